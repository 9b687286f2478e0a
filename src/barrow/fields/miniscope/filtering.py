"""Slow and fast parts of traces: unit × frame, a few units at a time."""

from collections.abc import Iterator

import numpy as np

AT_ONCE = 2**22
"""Values: a long recording has gigabytes of traces, and filters hold several copies."""


def rows_at_once(rows: int, length: int) -> Iterator[slice]:
    """Yield rows of an array that are worked on together.

    Examples
    --------
    >>> list(rows_at_once(3, 2 * AT_ONCE))
    [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    size = max(1, AT_ONCE // max(1, length))
    for low in range(0, rows, size):
        yield slice(low, min(low + size, rows))


def low_pass(traces: np.ndarray, frequency: float) -> np.ndarray:
    """Return what is slower than a frequency in cycles per frame (Butterworth, both ways)."""
    return _filter(traces, frequency, "low")


def high_pass(traces: np.ndarray, frequency: float) -> np.ndarray:
    """Return what is faster than a frequency in cycles per frame (Butterworth, both ways)."""
    return _filter(traces, frequency, "high")


def noise_fft(traces: np.ndarray, noise_range: tuple[float, float] = (0.06, 0.5)) -> np.ndarray:
    """Return the noise of each trace: from the mean logarithm of its power in a band."""
    from scipy import fft

    count, length = traces.shape
    frequency = fft.rfftfreq(length)
    band = (frequency >= noise_range[0]) & (frequency <= noise_range[1])
    if not band.any():
        return np.asarray(traces.std(axis=1))
    mean = np.empty(count)
    for rows in rows_at_once(count, length):
        centred = traces[rows] - traces[rows].mean(axis=1, keepdims=True)
        power = np.abs(fft.rfft(centred, axis=1)[:, band]) ** 2 / length
        mean[rows] = np.log(np.maximum(power, 1e-20)).mean(axis=1)
    # The logarithm of noise power lies Euler's constant below that of its mean.
    return np.asarray(np.sqrt(np.exp(mean + 0.5772156649)))


def _filter(traces: np.ndarray, frequency: float, kind: str) -> np.ndarray:
    from scipy.signal import butter, sosfiltfilt

    if traces.shape[1] < 16:
        values = traces.astype(np.float32)
        slow = values.mean(axis=1, keepdims=True) * np.ones_like(values)
        return np.asarray(slow if kind == "low" else values - slow)
    sections = butter(2, 2 * frequency, kind, output="sos")
    found = np.empty(traces.shape, np.float32)
    for rows in rows_at_once(*traces.shape):
        found[rows] = sosfiltfilt(sections, traces[rows].astype(np.float32), axis=1)
    return found
