"""Find and undo the motion of the tissue, to a fraction of a pixel.

Every frame is compared with one template, which is made from frames that the length of the
movie alone decides. So the answer for a frame does not depend on how the movie is cut.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

TEMPLATE_FRAMES = 96
"""So many frames, evenly spread, make the template."""

_ROUNDS = 4
_NEWTON = 5


@dataclass(frozen=True)
class Template:
    """What frames are compared with: its spectrum, weighed by what can be trusted."""

    image: np.ndarray
    max_sh: int
    sigma: float = 1.5
    """Pixels; finer detail than this is noise."""
    coarse: float = 4.0
    """Pixels; what is wider than this is light, not structure. The optics hold still while the
    tissue moves: what they leave in a frame would draw every shift towards none."""


def sample_numbers(frames: int, count: int = TEMPLATE_FRAMES) -> np.ndarray:
    """Return which frames make the template.

    Examples
    --------
    >>> sample_numbers(10, 5)
    array([0, 2, 4, 7, 9])
    """
    return np.unique(np.rint(np.linspace(0, frames - 1, min(frames, count))).astype(int))


def make_template(sample: np.ndarray, max_sh: int = 20) -> Template:
    """Return the template of a sample of frames: their mean, each moved into place."""
    frames = np.stack([flatten(frame, Template.coarse) for frame in sample])
    image = frames[len(frames) // 2]
    for _ in range(_ROUNDS):
        template = Template(image, max_sh)
        shifts = _register(frames, template)
        # The template stays where the tissue is most of the time.
        shifts -= np.median(shifts, axis=0)
        image = np.mean([_shift(f, s, 1) for f, s in zip(frames, shifts, strict=True)], axis=0)
    return Template(image.astype(np.float32), max_sh)


def estimate_motion(movie: np.ndarray, template: Template) -> np.ndarray:
    """Return the shift that puts each frame onto the template: frame × (height, width).

    The best whole shift is the peak of the cross-correlation; from there the correlation is
    climbed as the smooth function that its spectrum says it is.
    """
    return _register((flatten(frame, template.coarse) for frame in movie), template)


def flatten(frame: np.ndarray, coarse: float) -> np.ndarray:
    """Return a frame relative to the light around each pixel."""
    import cv2

    cv2.setNumThreads(1)
    values = frame.astype(np.float32)
    around = cv2.GaussianBlur(values, (0, 0), coarse, borderType=cv2.BORDER_REFLECT)
    # A dark frame has no light to compare with.
    floor = max(1e-6, 0.02 * float(around.max()))
    return np.asarray(values / np.maximum(around, floor) - 1, np.float32)


def _register(frames: Iterable[np.ndarray], template: Template) -> np.ndarray:
    from scipy import fft

    shape = template.image.shape
    size = [fft.next_fast_len(n, real=True) for n in shape]
    taper = np.outer(*(_taper(n) for n in shape)).astype(np.float32)
    fy = fft.fftfreq(size[0])[:, None]
    fx = fft.rfftfreq(size[1])[None]
    band = np.exp(-2 * (np.pi * template.sigma) ** 2 * (fy**2 + fx**2))
    spectrum = fft.rfft2((template.image - template.image.mean()) * taper, size)
    weight = (spectrum * band).astype(np.complex64)
    # Beyond these frequencies nothing is left to climb on.
    rows = np.flatnonzero(np.abs(fy[:, 0]) < 0.75 / template.sigma / np.pi * 2)
    cols = np.flatnonzero(fx[0] < 0.75 / template.sigma / np.pi * 2)
    wy = (2 * np.pi * fy[rows, 0]).astype(np.float64)
    wx = (2 * np.pi * fx[0, cols]).astype(np.float64)
    # Of a real image half of the spectrum is kept; the other half counts as much.
    twice = np.where((cols == 0) | (2 * cols == size[1]), 1.0, 2.0)
    reach = [min(template.max_sh, n // 2 - 1 if n > 2 else 0) for n in shape]
    out = []
    for frame in frames:
        cross = weight * np.conj(fft.rfft2((frame - frame.mean()) * taper, size))
        if not cross.any():
            out.append(np.zeros(2))
            continue
        surface = fft.irfft2(cross, size)
        window = np.roll(surface, reach, (0, 1))[: 2 * reach[0] + 1, : 2 * reach[1] + 1]
        peak = np.unravel_index(int(window.argmax()), window.shape)
        start = np.array([peak[0] - reach[0], peak[1] - reach[1]], float)
        out.append(_climb(cross[np.ix_(rows, cols)] * twice, wy, wx, start))
    return np.array(out, np.float64).reshape(-1, 2)


def apply_motion(movie: np.ndarray, shifts: np.ndarray, fill: float = 0) -> np.ndarray:
    """Return frames moved by their shifts; what comes from outside is ``fill``."""
    out = np.empty_like(movie)
    for number, (frame, shift) in enumerate(zip(movie, shifts, strict=True)):
        out[number] = _shift(frame, shift, None, fill)
    return out


def _climb(cross: np.ndarray, wy: np.ndarray, wx: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return where the correlation is largest near a whole shift, by Newton's method."""
    at = start.copy()
    for _ in range(_NEWTON):
        turned = cross * np.exp(1j * wy * at[0])[:, None] * np.exp(1j * wx * at[1])
        real, imaginary = turned.real, turned.imag
        slope = -np.array([wy @ imaginary.sum(axis=1), imaginary.sum(axis=0) @ wx])
        yy = -(wy**2) @ real.sum(axis=1)
        xx = -real.sum(axis=0) @ wx**2
        yx = -(wy @ real @ wx)
        determinant = yy * xx - yx**2
        if determinant <= 0 or yy >= 0:
            break
        step = np.array([xx * slope[0] - yx * slope[1], yy * slope[1] - yx * slope[0]])
        step = np.clip(-step / determinant, -0.5, 0.5)
        at += step
        if np.abs(step).max() < 1e-4:
            break
    return at if np.abs(at - start).max() <= 1.0 else start


def _shift(frame: np.ndarray, shift: Any, border: int | None, fill: float = 0) -> np.ndarray:
    import cv2

    cv2.setNumThreads(1)
    turn = np.array([[1, 0, shift[1]], [0, 1, shift[0]]], np.float64)
    size = frame.shape[1], frame.shape[0]
    mode = cv2.BORDER_CONSTANT if border is None else border
    return np.asarray(
        cv2.warpAffine(
            np.ascontiguousarray(frame),
            turn,
            size,
            flags=cv2.INTER_CUBIC,
            borderMode=mode,
            borderValue=fill,
        )
    )


def _taper(length: int) -> np.ndarray:
    """Return a window that falls to nothing at both ends, over a tenth of the length."""
    ramp = np.clip(np.minimum(np.arange(length), np.arange(length)[::-1]) + 1, 0, None)
    return np.asarray(np.sin(np.pi / 2 * np.clip(ramp / max(1.0, 0.1 * length), 0, 1)) ** 2)
