"""Filters in time, and what else is done to signals before their analysis.

Plain array functions on trial × time × channel.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import fft, signal

from barrow.errors import InputError
from barrow.fields.ephys.outputs import convert
from barrow.fields.ephys.trials import pieces

CLASSES = ("but", "firws", None)
TYPES = ("lp", "hp", "bp", "bs")
WINDOWS = ("hamming", "hann", "blackman")
HILBERT = ("abs", "complex", "real", "imag", "absreal", "absimag", "angle")


@dataclass(frozen=True)
class Filter:
    """Which filter; its coefficients are computed once for each process."""

    kind: str
    """``but`` for Butterworth (IIR), ``firws`` for windowed sinc (FIR)."""
    band: str
    """``lp``, ``hp``, ``bp`` or ``bs``: low-pass, high-pass, band-pass, band-stop."""
    freq: tuple[float, ...]
    order: int
    direction: str
    samplerate: float
    window: str = "hamming"

    def __call__(self, trials: np.ndarray) -> np.ndarray:
        """Return filtered signals: time is the second to last axis."""
        if self.kind == "but":
            run = signal.sosfiltfilt if self.direction == "twopass" else signal.sosfilt
            found: np.ndarray = run(self.coefficients(), trials, axis=-2)
            return found
        found = convolve_centred(trials, self.coefficients())
        if self.direction == "twopass":
            found = convolve_centred(found, self.coefficients())
        return found

    def coefficients(self) -> np.ndarray:
        """Return second-order sections (IIR), or the impulse response (FIR)."""
        return _design(self)


def choose_filter(
    filter_class: str,
    *,
    filter_type: str,
    freq: Any,
    order: int | None,
    direction: str | None,
    window: str,
    samplerate: float,
    shortest: int,
) -> Filter:
    """Return the filter that the arguments of ``preprocessing`` ask for.

    Parameters
    ----------
    shortest
        Samples of the shortest trial.

    Examples
    --------
    >>> choose_filter(
    ...     "but", filter_type="bp", freq=[40, 20], order=None, direction="twopass",
    ...     window="hamming", samplerate=1000.0, shortest=1000,
    ... ).freq
    (20.0, 40.0)
    """
    if filter_class not in ("but", "firws"):
        raise InputError(f"filter_class={filter_class!r} is unknown. Use 'but', 'firws' or None.")
    if filter_type not in TYPES:
        raise InputError(f"filter_type={filter_type!r} is unknown. Use {', '.join(TYPES)}.")
    edges = _check_freq(freq, filter_type, samplerate)
    if filter_class == "but":
        directions: tuple[str, ...] = ("twopass", "onepass")
        direction, order = direction or "twopass", 4 if order is None else order
    else:
        directions = ("twopass", "onepass", "onepass-minphase")
        direction, order = direction or "onepass", min(shortest, 1000) if order is None else order
        if window not in WINDOWS:
            raise InputError(f"window={window!r} is unknown. Use {', '.join(WINDOWS)}.")
    if direction not in directions:
        raise InputError(
            f"direction={direction!r} does not exist for filter_class={filter_class!r}. "
            f"Use {', '.join(directions)}."
        )
    if int(order) != order or order < 1:
        raise InputError(f"order={order!r} is no order of a filter: use a whole number from 1 on.")
    return Filter(filter_class, filter_type, edges, int(order), direction, samplerate, window)


def _check_freq(freq: Any, filter_type: str, samplerate: float) -> tuple[float, ...]:
    wanted = 1 if filter_type in ("lp", "hp") else 2
    try:
        edges = tuple(float(value) for value in np.sort(np.atleast_1d(freq)))
    except (TypeError, ValueError):
        edges = ()
    if len(edges) != wanted or len(set(edges)) != wanted:
        words = "one frequency" if wanted == 1 else "two different frequencies"
        raise InputError(f"freq={freq!r}: filter_type={filter_type!r} needs {words} in Hz.")
    if not all(0 < edge < samplerate / 2 for edge in edges):
        raise InputError(
            f"freq={freq!r} must lie between 0 and {samplerate / 2:g} Hz, half the sample rate."
        )
    return edges


@lru_cache(maxsize=32)
def _design(chosen: Filter) -> np.ndarray:
    if chosen.kind == "but":
        edges = chosen.freq[0] if len(chosen.freq) == 1 else chosen.freq
        made = signal.butter(chosen.order, edges, chosen.band, fs=chosen.samplerate, output="sos")
        return np.asarray(made)
    kernel = design_sinc(
        chosen.window, chosen.order, [f / chosen.samplerate for f in chosen.freq], chosen.band
    )
    return minimum_phase(kernel) if chosen.direction == "onepass-minphase" else kernel


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


def preprocess(
    trials: np.ndarray,
    lengths: np.ndarray | None = None,
    *,
    chosen: Filter | None = None,
    polyremoval: int | None = None,
    zscore: bool = False,
    rectify: bool = False,
    hilbert: str | None = None,
) -> np.ndarray:
    """Return trials after z-score, detrending, filter, and rectification or Hilbert transform.

    Parameters
    ----------
    trials
        Trial × time × channel.
    lengths
        Samples of each trial, if some are shorter than the array. Behind them the
        answer is NaN.
    hilbert
        What is returned of the analytic signal: ``"abs"`` for the envelope,
        ``"angle"`` for the phase, and so on.

    Examples
    --------
    >>> ramp = np.arange(6.0)[None, :, None]
    >>> preprocess(ramp, polyremoval=0)[0, :, 0].tolist()
    [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]
    """
    dtype = np.complex64 if hilbert == "complex" else np.float32
    answer = np.empty(trials.shape, dtype)
    if lengths is not None:
        answer[:] = np.nan
    for which, channels, found in pieces(trials, lengths):
        length = found.shape[1]
        if zscore:
            found = _remove(found, polyremoval)
            found = (found - found.mean(axis=1, keepdims=True)) / found.std(axis=1, keepdims=True)
            found = found.astype(np.float32, copy=False)
        if chosen is not None or (polyremoval is not None and not zscore):
            found = _remove(found, polyremoval)
        if chosen is not None:
            found = chosen(found)
        found = found.astype(np.float32, copy=False)
        if rectify:
            found = np.abs(found)
        elif hilbert is not None:
            found = convert(signal.hilbert(found, axis=1), hilbert)
        answer[which, :length, channels] = found
    return answer


def _remove(signals: np.ndarray, order: int | None) -> np.ndarray:
    if order is None:
        return signals
    holes = np.isnan(signals).any(axis=-2, keepdims=True) if signals.dtype.kind == "f" else None
    if order == 1 and holes is not None and holes.any():
        # A least-squares fit refuses NaN; only the channels that have one become NaN.
        filled = np.where(holes, 0, signals)
        return np.where(holes, np.nan, signal.detrend(filled, axis=-2)).astype(signals.dtype)
    kind = "constant" if order == 0 else "linear"
    return np.asarray(signal.detrend(signals, type=kind, axis=-2))
