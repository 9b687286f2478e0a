"""Windowed-sinc filters: their impulse response, and the convolution with it."""

import numpy as np
from scipy import fft, signal

WINDOWS = ("hamming", "hann", "blackman")


def design_sinc(window: str, order: int, edges: list[float], band: str = "lp") -> np.ndarray:
    """Return the impulse response of a windowed-sinc filter.

    Parameters
    ----------
    order
        Samples minus one; an odd order is raised by one.
    edges
        Edges of the band in cycles for each sample, from low to high.

    Examples
    --------
    >>> kernel = design_sinc("hamming", 100, [0.1])
    >>> len(kernel), round(float(kernel.sum()), 6)
    (101, 1.0)
    """
    order += order % 2
    if band == "lp":
        return _sinc(window, order, edges[0])
    centre = order // 2
    inverted = -_sinc(window, order, edges[0] if band != "bs" else edges[1])
    inverted[centre] += 1
    if band == "hp":
        return inverted
    kernel = inverted + _sinc(window, order, edges[1] if band == "bp" else edges[0])
    if band == "bp":
        kernel[centre] -= 1
    return np.asarray(kernel)


def _sinc(window: str, order: int, edge: float) -> np.ndarray:
    side = np.arange(1, order / 2 + 1)
    half = np.sin(2 * np.pi * edge * side) / side
    kernel = np.concatenate([half[::-1], [2 * np.pi * edge], half])
    kernel *= getattr(signal.windows, window)(order + 1)
    return np.asarray(kernel / kernel.sum())


def minimum_phase(kernel: np.ndarray) -> np.ndarray:
    """Return a causal filter of the same gain, by its real cepstrum."""
    size = 1 << int(np.ceil(np.log2(len(kernel) * 1000)))
    gain = np.maximum(np.abs(fft.fft(kernel, size)), 1e-8)
    cepstrum = fft.ifft(np.log(gain)).real
    # Fold the part before time zero onto the part after it.
    half = size // 2
    folded = np.zeros(size)
    folded[0] = cepstrum[0]
    folded[1:half] = cepstrum[1:half] + cepstrum[:half:-1]
    folded[half] = cepstrum[half]
    return np.asarray(fft.ifft(np.exp(fft.fft(folded))).real[: len(kernel)])


def convolve_centred(trials: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return signals convolved with a kernel, as long as before; NaN stays where it is."""
    signals = np.asarray(trials, float)
    length, taps = signals.shape[-2], len(kernel)
    first = (taps - 1) // 2
    holes = np.isnan(signals).any(axis=-2)
    size = fft.next_fast_len(length + taps - 1, real=True)
    spectrum = fft.rfft(signals, size, axis=-2)
    spectrum *= fft.rfft(kernel, size)[:, None]
    found = fft.irfft(spectrum, size, axis=-2, overwrite_x=True)[..., first : first + length, :]
    for place in np.argwhere(holes):
        # A Fourier transform has spread the NaN over the whole trial.
        line = (*place[:-1], slice(None), place[-1])
        found[line] = np.convolve(signals[line], kernel)[first : first + length]
    return np.asarray(found)
