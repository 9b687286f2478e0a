"""Clean frames: glow, noise and background. Plain functions of frame × height × width."""

from typing import Any

import numpy as np

from barrow.errors import InputError


def glow_removal(movie: np.ndarray, minimum: np.ndarray) -> np.ndarray:
    """Return the movie without what is there in every frame.

    Parameters
    ----------
    minimum
        The least value of each pixel over all frames: height × width.
    """
    return np.asarray(movie - np.minimum(minimum, movie))


def denoise(movie: np.ndarray, method: str = "median", ksize: int = 7, **more: Any) -> np.ndarray:
    """Return frames with less noise.

    Parameters
    ----------
    method
        ``"median"``, ``"gaussian"``, ``"bilateral"``, or ``"none"``.
    ksize
        Side of the square, an odd number of pixels.
    more
        ``sigmaX`` of a Gaussian; ``d``, ``sigmaColor`` and ``sigmaSpace`` of a bilateral filter.
    """
    cv2 = _cv2()
    if method == "none":
        return movie
    if method != "bilateral" and (ksize < 1 or ksize % 2 == 0):
        raise InputError(f"denoise ksize={ksize!r}: use an odd number of pixels, for example 7.")
    if method == "median":
        return _each(movie, lambda frame: _median(frame, ksize))
    if method == "gaussian":
        sigma = more.get("sigmaX", 0)
        return _each(movie, lambda frame: cv2.GaussianBlur(frame, (ksize, ksize), sigma))
    if method == "bilateral":
        options = {"d": 5, "sigmaColor": 25.0, "sigmaSpace": 5.0, **more}
        return _each(movie, lambda frame: cv2.bilateralFilter(frame, **options))
    raise InputError(
        f"denoise method={method!r} is unknown. Use 'median', 'gaussian', 'bilateral' or 'none'."
    )


def remove_background(movie: np.ndarray, method: str = "tophat", wnd: int = 15) -> np.ndarray:
    """Return frames without what is wider than a cell.

    Parameters
    ----------
    method
        ``"tophat"`` takes away what a disk of radius ``wnd`` fits under; ``"uniform"`` the
        mean of a square of side ``wnd``; ``"none"`` nothing.
    wnd
        In pixels; the radius of the largest cell.
    """
    cv2 = _cv2()
    if method == "none":
        return movie
    if wnd < 1:
        raise InputError(f"background_removal wnd={wnd!r}: use 1 pixel or more.")
    if method == "tophat":
        y, x = np.mgrid[-wnd : wnd + 1, -wnd : wnd + 1]
        disk = (x**2 + y**2 <= wnd**2).astype(np.uint8)
        return _each(movie, lambda frame: cv2.morphologyEx(frame, cv2.MORPH_TOPHAT, disk))
    if method == "uniform":
        return _each(movie, lambda frame: cv2.subtract(frame, cv2.blur(frame, (wnd, wnd))))
    raise InputError(
        f"background_removal method={method!r} is unknown. Use 'tophat', 'uniform' or 'none'."
    )


def clean(
    movie: np.ndarray,
    minimum: np.ndarray,
    *,
    denoise_options: dict[str, Any],
    background_options: dict[str, Any],
) -> np.ndarray:
    """Return frames after all three steps, one frame at a time: nothing lies in between."""
    out = np.empty(movie.shape, working_dtype(movie.dtype))
    for number in range(len(movie)):
        frame = glow_removal(movie[number : number + 1], minimum).astype(out.dtype, copy=False)
        frame = denoise(frame, **denoise_options)
        out[number] = remove_background(frame, **background_options)[0]
    return out


def working_dtype(dtype: Any) -> np.dtype:
    """Return the dtype in which frames are cleaned: 8 or 16 bits as they are, or floats."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.dtype("u1")
    return dtype if dtype in (np.dtype("u1"), np.dtype("u2")) else np.dtype("f4")


def _median(frame: np.ndarray, ksize: int) -> np.ndarray:
    # OpenCV knows larger medians for 8 bits only.
    if frame.dtype == np.uint8 or ksize <= 5:
        return np.asarray(_cv2().medianBlur(frame, ksize))
    from scipy.ndimage import median_filter

    return np.asarray(median_filter(frame, ksize, mode="nearest"))


def _each(movie: np.ndarray, func: Any) -> np.ndarray:
    out = np.empty(movie.shape, movie.dtype)
    for number, frame in enumerate(movie):
        out[number] = func(np.ascontiguousarray(frame))
    return out


def _cv2() -> Any:
    import cv2

    # Tasks run side by side; each keeps to one core.
    cv2.setNumThreads(1)
    return cv2
