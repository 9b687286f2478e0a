"""Slow and fast parts of pixels, in segments of frames that lie at fixed places.

A segment is taken apart into cosines. The slow ones are few: fifteen numbers for 128 frames
at the usual frequency. What pixels have in common over a movie is then a sum over segments,
which any chunks of whole segments give alike: no pixel is ever needed from end to end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd

import numpy as np

SEGMENT = 128
"""Frames; segments begin at multiples of it."""

_BAND_PIXELS = 2**14


@lru_cache(maxsize=32)
def slow_cosines(length: int, frequency: float) -> np.ndarray:
    """Return cosines slower than a frequency in cycles per frame: cosine × frame, orthonormal.

    Examples
    --------
    >>> slow_cosines(128, 0.06).shape
    (16, 128)
    """
    count = max(1, min(length, int(np.ceil(2 * length * frequency))))
    at = (np.arange(length) + 0.5) / length
    waves = np.cos(np.pi * np.arange(count)[:, None] * at) * np.sqrt(2 / length)
    waves[0] = np.sqrt(1 / length)
    return np.asarray(waves, np.float32)


def split_segments(numbers: np.ndarray) -> Iterator[slice]:
    """Yield the parts of a chunk that lie in one segment each.

    Parameters
    ----------
    numbers
        Of the frames of the chunk, one after the other.
    """
    start = 0
    while start < len(numbers):
        stop = min(len(numbers), start + SEGMENT - int(numbers[start]) % SEGMENT)
        yield slice(start, stop)
        start = stop


def transform(segment: np.ndarray, frequency: float) -> np.ndarray:
    """Return the slow part of a segment of frames: cosine × pixel."""
    flat = segment.reshape(len(segment), -1)
    cosines = slow_cosines(len(flat), frequency)
    out = np.empty((len(cosines), flat.shape[1]), np.float32)
    for low in range(0, flat.shape[1], _BAND_PIXELS):
        band = slice(low, low + _BAND_PIXELS)
        out[:, band] = cosines @ flat[:, band].astype(np.float32)
    return out


@dataclass
class Summary:
    """What a pass over a movie says about each of its pixels."""

    frames: int
    total: np.ndarray
    """Sum over frames."""
    slow: np.ndarray
    """Energy of the slow part, mean included."""
    fast: np.ndarray
    """Energy of the noise, and in ``degrees`` of how many numbers it is the sum."""
    degrees: int
    peaks: dict[int, np.ndarray] = field(default_factory=dict)
    """The largest value in each block of frames, by the number of the block."""

    def __add__(self, other: "Summary") -> "Summary":
        peaks = dict(self.peaks)
        for number, image in other.peaks.items():
            peaks[number] = np.maximum(peaks[number], image) if number in peaks else image
        return Summary(
            self.frames + other.frames,
            self.total + other.total,
            self.slow + other.slow,
            self.fast + other.fast,
            self.degrees + other.degrees,
            peaks,
        )

    @property
    def max_proj(self) -> np.ndarray:
        """The largest value of each pixel."""
        return np.asarray(np.maximum.reduce(list(self.peaks.values())))

    def roll_windows(self, wnd_size: int, stp_size: int) -> np.ndarray:
        """Return the largest values in windows of frames: window × height × width."""
        block = gcd(wnd_size, stp_size)
        images = [self.peaks[number] for number in sorted(self.peaks)]
        size, step = wnd_size // block, stp_size // block
        last = max(1, len(images) - size + 1)
        starts = range(0, last + (last - 1) % step, step)
        return np.stack([np.maximum.reduce(images[start : start + size]) for start in starts])

    @property
    def mean(self) -> np.ndarray:
        """The mean of each pixel."""
        return self.total / self.frames

    @property
    def variance(self) -> np.ndarray:
        """The variance of the slow part of each pixel, times the number of frames."""
        return np.maximum(self.slow - self.total**2 / self.frames, 0)

    @property
    def noise(self) -> np.ndarray:
        """The standard deviation of the noise of each pixel."""
        return np.asarray(np.sqrt(np.maximum(self.fast, 0) / max(1, self.degrees)))


def summarise(
    movie: np.ndarray,
    numbers: np.ndarray,
    *,
    noise_freq: float,
    noise_range: tuple[float, float],
    block: int,
) -> Summary:
    """Return the summary of a chunk.

    Parameters
    ----------
    noise_freq
        Cycles per frame, from 0 to 0.5: what is slower is signal.
    noise_range
        Which frequencies tell the noise.
    block
        Frames of which the largest value is kept.
    """
    shape = movie.shape[1:]
    total, slow, fast = (np.zeros(shape) for _ in range(3))
    degrees = 0
    for part in split_segments(numbers):
        segment = movie[part]
        low = transform(segment, noise_freq)
        total += low[0].reshape(shape) * np.sqrt(len(segment))
        slow += np.einsum("kp,kp->p", low, low, dtype=np.float64).reshape(shape)
        below, none = _energy(segment, noise_range[0])
        above, all_ = _energy(segment, noise_range[1])
        fast += (above - below).reshape(shape)
        degrees += all_ - none
    peaks = {}
    for number in range(int(numbers[0]) // block, int(numbers[-1]) // block + 1):
        inside = (numbers // block) == number
        peaks[number] = movie[inside].max(axis=0)
    return Summary(len(movie), total, slow, fast, degrees, peaks)


def _energy(segment: np.ndarray, frequency: float) -> tuple[np.ndarray, int]:
    """Return the energy of each pixel below a frequency, and of how many numbers it is the sum."""
    if frequency >= 0.5:
        flat = segment.reshape(len(segment), -1)
        out = np.empty(flat.shape[1])
        for low in range(0, flat.shape[1], _BAND_PIXELS):
            band = flat[:, low : low + _BAND_PIXELS].astype(np.float32)
            out[low : low + _BAND_PIXELS] = np.einsum("tp,tp->p", band, band, dtype=np.float64)
        return out, len(flat)
    slow = transform(segment, frequency)
    return np.einsum("kp,kp->p", slow, slow, dtype=np.float64), len(slow)
