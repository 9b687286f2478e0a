"""Slow and fast parts of traces: unit × frame."""

import numpy as np


def low_pass(traces: np.ndarray, frequency: float) -> np.ndarray:
    """Return what is slower than a frequency in cycles per frame (Butterworth, both ways)."""
    return _filter(traces, frequency, "low")


def high_pass(traces: np.ndarray, frequency: float) -> np.ndarray:
    """Return what is faster than a frequency in cycles per frame (Butterworth, both ways)."""
    return _filter(traces, frequency, "high")


def noise_fft(traces: np.ndarray, noise_range: tuple[float, float] = (0.06, 0.5)) -> np.ndarray:
    """Return the noise of each trace: from the mean logarithm of its power in a band."""
    from scipy import fft

    length = traces.shape[1]
    power = np.abs(fft.rfft(traces - traces.mean(axis=1, keepdims=True), axis=1)) ** 2 / length
    frequency = fft.rfftfreq(length)
    band = (frequency >= noise_range[0]) & (frequency <= noise_range[1])
    if not band.any():
        return np.asarray(traces.std(axis=1))
    # The logarithm of noise power lies Euler's constant below that of its mean.
    mean = np.log(np.maximum(power[:, band], 1e-20)).mean(axis=1) + 0.5772156649
    return np.asarray(np.sqrt(np.exp(mean)))


def _filter(traces: np.ndarray, frequency: float, kind: str) -> np.ndarray:
    from scipy.signal import butter, sosfiltfilt

    values = traces.astype(np.float32)
    if values.shape[1] < 16:
        slow = values.mean(axis=1, keepdims=True) * np.ones_like(values)
        return np.asarray(slow if kind == "low" else values - slow)
    sections = butter(2, 2 * frequency, kind, output="sos")
    return np.asarray(sosfiltfilt(sections, values, axis=1), np.float32)
