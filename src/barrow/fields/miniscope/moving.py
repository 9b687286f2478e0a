"""Find and undo the motion of the tissue, to a fraction of a pixel.

Every frame is compared with one template, which is made from frames that the length of the
movie alone decides. So the answer for a frame does not depend on how the movie is cut.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

TEMPLATE_FRAMES = 288
"""So many frames, evenly spread, make the template."""
SIGMA = 1.5
"""Pixels; finer detail than this is noise."""
COARSE = 6.0
"""Pixels; what is wider than this is light, not structure. The optics hold still while the
tissue moves: what they leave in a frame would draw every shift towards none."""

_SAMPLE_BYTES = 2**27
_FEWEST = 96
# A template of few frames puts more of them in place, which make a better one.
_ROUNDS = (16, 48, _FEWEST, TEMPLATE_FRAMES)
_NEWTON = 5
_LEAST_SPREAD = 1.0


@dataclass(frozen=True)
class Template:
    """What frames are compared with, and all that is the same for each of them."""

    image: np.ndarray
    max_sh: int
    taper: np.ndarray
    weight: np.ndarray
    """Spectrum of the image, as far as it can be trusted."""
    rows: np.ndarray
    cols: np.ndarray
    """Frequencies at which there is something to climb on, and below what they are in numbers."""
    waves: tuple[np.ndarray, np.ndarray]
    twice: np.ndarray
    """Of a real image half of the spectrum is kept; the other half counts as much."""
    energy: float
    """Correlation of the image with itself: how high the peak of a frame should be."""
    spread: np.ndarray
    """Pixels; how far the tissue usually is from its place, in height and in width."""

    @classmethod
    def of(cls, image: np.ndarray, max_sh: int, spread: Any = (np.inf, np.inf)) -> "Template":
        """Return an image ready to be compared with."""
        from scipy import fft

        size = _fast_size(image.shape)
        taper = np.outer(*(_taper(n) for n in image.shape)).astype(np.float32)
        fy, fx = fft.fftfreq(size[0]), fft.rfftfreq(size[1])
        band = np.exp(-2 * (np.pi * SIGMA) ** 2 * (fy[:, None] ** 2 + fx**2))
        spectrum = fft.rfft2((image - image.mean()) * taper, size)
        itself = fft.irfft2(spectrum * band * np.conj(spectrum), size)
        least = 1.5 / SIGMA / np.pi
        rows, cols = np.flatnonzero(np.abs(fy) < least), np.flatnonzero(fx < least)
        return cls(
            image=image,
            max_sh=max_sh,
            taper=taper,
            weight=(spectrum * band).astype(np.complex64),
            rows=rows,
            cols=cols,
            waves=(2 * np.pi * fy[rows], 2 * np.pi * fx[cols]),
            twice=np.where((cols == 0) | (2 * cols == size[1]), 1.0, 2.0),
            energy=float(itself[0, 0]),
            spread=np.asarray(spread, float),
        )


def sample_numbers(frames: int, count: int = TEMPLATE_FRAMES) -> np.ndarray:
    """Return which frames make the template.

    Examples
    --------
    >>> sample_numbers(10, 5)
    array([0, 2, 4, 7, 9])
    """
    return np.unique(np.rint(np.linspace(0, frames - 1, min(frames, count))).astype(int))


def sample_size(frame_bytes: int) -> int:
    """Return how many frames make the template: fewer if they are large, as all are held at once.

    Examples
    --------
    >>> sample_size(600 * 600), sample_size(1000 * 1000)
    (288, 134)
    """
    return min(TEMPLATE_FRAMES, max(_FEWEST, _SAMPLE_BYTES // frame_bytes))


def make_template(sample: np.ndarray, max_sh: int = 20) -> Template:
    """Return the template of a sample of frames: their mean, each moved into place."""
    image = flatten(sample[len(sample) // 2])
    template = Template.of(image, max_sh)
    for count in _ROUNDS:
        chosen = sample[sample_numbers(len(sample), count)]
        shifts = estimate_motion(chosen, template)
        # The template stays where the tissue is most of the time.
        shifts -= np.median(shifts, axis=0)
        # Of a normal distribution by its middle half: frames that went astray do not count.
        spread = np.maximum(_LEAST_SPREAD, 1.4826 * np.median(np.abs(shifts), axis=0))
        total = np.zeros(image.shape)
        for frame, shift in zip(chosen, shifts, strict=True):
            total += _shift(flatten(frame), shift, 1)
        template = Template.of(np.asarray(total / len(chosen), np.float32), max_sh, spread)
    return template


def estimate_motion(movie: np.ndarray, template: Template) -> np.ndarray:
    """Return the shift that puts each frame onto the template: frame × (height, width).

    The best whole shift is the most likely one: by the cross-correlation, relative to its
    noise, and by how far the tissue usually moves. That decides only where there is little
    light. From there the correlation is climbed as the smooth function that its spectrum says
    it is.
    """
    return _register((flatten(frame) for frame in movie), template)


def flatten(frame: np.ndarray) -> np.ndarray:
    """Return a frame without the light around each pixel.

    It is not divided by that light: dark places would then be loud with noise.
    """
    import cv2

    cv2.setNumThreads(1)
    values = frame.astype(np.float32)
    return np.asarray(values - cv2.GaussianBlur(values, (0, 0), COARSE), np.float32)


def _register(frames: Iterable[np.ndarray], template: Template) -> np.ndarray:
    from scipy import fft

    shape = template.image.shape
    size = _fast_size(shape)
    inner = np.ix_(template.rows, template.cols)
    reach = [min(template.max_sh, n // 2 - 1 if n > 2 else 0) for n in shape]
    offsets = np.ogrid[-reach[0] : reach[0] + 1, -reach[1] : reach[1] + 1]
    unlikely = sum(
        (offset / spread) ** 2 / 2 for offset, spread in zip(offsets, template.spread, strict=True)
    )
    out = []
    for frame in frames:
        cross = template.weight * np.conj(fft.rfft2((frame - frame.mean()) * template.taper, size))
        if not cross.any():
            out.append(np.zeros(2))
            continue
        surface = fft.irfft2(cross, size)
        window = np.roll(surface, reach, (0, 1))[: 2 * reach[0] + 1, : 2 * reach[1] + 1]
        noise = max(float(surface.var()), float(np.finfo(np.float32).tiny))
        likely = window * (template.energy / noise) - unlikely
        peak = np.unravel_index(int(likely.argmax()), window.shape)
        start = np.array([peak[0] - reach[0], peak[1] - reach[1]], float)
        out.append(_climb(cross[inner] * template.twice, *template.waves, start))
    return np.array(out, np.float64).reshape(-1, 2)


def _fast_size(shape: tuple[int, ...]) -> list[int]:
    from scipy import fft

    return [fft.next_fast_len(n, real=True) for n in shape]


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
