"""Spectra by tapered Fourier transforms: of whole trials, and of sliding windows.

Plain array functions: trial × time × channel in, trial × time × taper × frequency ×
channel out.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import fft

from barrow.fields.ephys.detrending import detrend
from barrow.fields.ephys.outputs import convert, output_dtype
from barrow.fields.ephys.tapers import Taper
from barrow.fields.ephys.trials import PIECE_SAMPLES, pieces


def mtmfft(
    trials: np.ndarray,
    lengths: np.ndarray | None = None,
    *,
    taper: Taper = Taper(),  # noqa: B008 - frozen
    padded: int | None = None,
    bins: Any = slice(None),
    polyremoval: int | None = 0,
    output: str = "pow",
    keeptapers: bool = False,
    demean_taper: bool = False,
    ft_compat: bool = False,
) -> np.ndarray:
    """Return the spectrum of each trial and channel, by one or several tapers.

    The mean is removed, then the taper applied, then zeros added. A sine of
    amplitude A has the power A²/2 in all, whatever the padding.

    Parameters
    ----------
    trials
        Trial × time × channel.
    lengths
        Samples of each trial, if some are shorter than the array.
    padded
        Samples after padding; by default those of the array.
    bins
        Which of the Fourier frequencies are returned.
    polyremoval
        0 to remove the mean, 1 a straight line, None for neither.
    keeptapers
        Whether to return each taper. Otherwise their power is averaged.
    demean_taper
        Whether to remove the mean again after tapering.
    ft_compat
        Whether to scale as FieldTrip does: padding then lowers the power.

    Returns
    -------
    array
        Trial × 1 × taper × frequency × channel.

    Examples
    --------
    >>> time = np.arange(1000) / 1000
    >>> sine = np.sin(2 * np.pi * 40 * time)[None, :, None]
    >>> power = mtmfft(sine)
    >>> power.shape, int(power[0, 0, 0, :, 0].argmax()), round(float(power.sum()), 3)
    ((1, 1, 1, 501, 1), 40, 0.5)
    """
    n_fft = padded or trials.shape[1]
    count = taper.count if keeptapers else 1
    chosen = np.arange(n_fft // 2 + 1)[bins].size
    shape = (trials.shape[0], 1, count, chosen, trials.shape[2])
    answer = np.zeros(shape, output_dtype(output))
    for which, channels, signals in pieces(trials, lengths):
        length = signals.shape[1]
        if not length:
            answer[which, ..., channels] = np.nan
            continue
        if demean_taper:
            # What is left at 0 Hz is rounding; Granger causality looks at its logarithm.
            signals = signals.astype(np.float64)
        signals = detrend(signals, polyremoval)
        scale = np.sqrt(2) / (n_fft if ft_compat else np.sqrt(length * n_fft))
        windows = (taper.windows(length, n_fft) * scale).astype(signals.dtype)
        spectra = _taper_each(signals, windows, n_fft, bins, demean_taper)
        if output == "pow" and not keeptapers:
            answer[which, 0, 0, :, channels] = _average_power(spectra, len(windows))
        else:
            for number, spectrum in enumerate(spectra):
                answer[which, 0, number, :, channels] = convert(spectrum, output)
    return answer


def _taper_each(
    signals: np.ndarray, windows: np.ndarray, n_fft: int, bins: Any, demean_taper: bool
) -> Iterator[np.ndarray]:
    """Yield the spectrum with each taper; it may be written over."""
    tapered = np.empty_like(signals)
    for window in windows:
        np.multiply(signals, window[:, None], out=tapered)
        if demean_taper:
            tapered -= tapered.mean(axis=1, keepdims=True)
        yield fft.rfft(tapered, n_fft, axis=1)[:, bins]


def _average_power(spectra: Iterator[np.ndarray], count: int) -> np.ndarray:
    """Return the mean power over tapers."""
    total: Any = None
    for spectrum in spectra:
        # Real and imaginary parts side by side: they are added at the end, not for each taper.
        parts = spectrum.view(spectrum.real.dtype)
        np.square(parts, out=parts)
        total = parts if total is None else np.add(total, parts, out=total)
    power: np.ndarray = total[..., 0::2] + total[..., 1::2]
    if count > 1:
        power /= count
    return power


def mtmconvol(
    trials: np.ndarray,
    facts: np.ndarray | None = None,
    *,
    window: int,
    step: int | None = 1,
    at: np.ndarray | None = None,
    samplerate: float = 1.0,
    offset: int = 0,
    taper: Taper = Taper(),  # noqa: B008 - frozen
    bins: Any = slice(None),
    polyremoval: int | None = 0,
    output: str = "pow",
    keeptapers: bool = False,
    average: bool = False,
) -> np.ndarray:
    """Return spectra of windows that slide over each trial.

    A window is centred on its time; beyond the ends of a trial there are zeros.

    Parameters
    ----------
    trials
        Trial × time × channel.
    facts
        Samples, and time of the first sample in samples, of each trial; None if all
        are as long as the array and begin at ``offset``.
    window
        Samples of a window.
    step
        Samples from one window to the next.
    at
        Times in seconds on which windows are centred, instead of ``step``.
    average
        Whether to return the mean over all windows: Welch's method.

    Returns
    -------
    array
        Trial × window × taper × frequency × channel. Trials with fewer windows than
        the longest one have NaN behind them.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(2, 600, 3)).astype("f4")
    >>> mtmconvol(noise, window=200, step=100).shape
    (2, 6, 1, 101, 3)
    """
    n_trials, n_samples, n_channels = trials.shape
    lengths, offsets = split_facts(facts, n_trials, n_samples, offset)
    most = at.size if at is not None else count_windows(n_samples, step or 1)
    chosen = np.arange(window // 2 + 1)[bins].size
    shape = (n_trials, 1 if average else most, taper.count if keeptapers else 1, chosen, n_channels)
    answer = np.full(shape, np.nan, output_dtype(output))
    windows = (taper.windows(window, sym=False) * (np.sqrt(2) / window))[:, :, None]
    width = max(1, PIECE_SAMPLES // window)
    for trial in range(n_trials):
        length = int(lengths[trial])
        starts = _window_starts(length, int(offsets[trial]), window, step or 1, at, samplerate)
        padded, first = _pad_ends(trials[trial, :length], starts, window)
        view = np.lib.stride_tricks.sliding_window_view(padded, window, axis=0)
        for channel in range(n_channels):
            segments = view[starts - first, channel] if at is not None else None
            total: Any = 0.0
            for low in range(0, starts.size, width):
                part = slice(low, min(low + width, starts.size))
                # One segment in each column: time is the second to last axis.
                block = (
                    segments[part] if segments is not None else view[starts[part] - first, channel]
                ).T
                found = _transform(block, windows, bins, polyremoval, output, keeptapers)
                if average:
                    total = total + found.sum(axis=2, dtype=np.float64)
                else:
                    answer[trial, part, :, :, channel] = found.transpose(2, 0, 1)
            if average:
                answer[trial, 0, :, :, channel] = total / max(starts.size, 1)
    return answer


def count_windows(length: int, step: int) -> int:
    """Return how many windows fit a trial.

    Examples
    --------
    >>> count_windows(600, 100), count_windows(601, 100)
    (6, 7)
    """
    return -(-length // step)


def split_facts(
    facts: np.ndarray | None, n_trials: int, n_samples: int, offset: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the length and the first sample of each trial."""
    if facts is None:
        return np.full(n_trials, n_samples), np.full(n_trials, offset)
    return facts[:, 0].astype(int), facts[:, 1].astype(int)


def _transform(
    block: np.ndarray,
    windows: np.ndarray,
    bins: Any,
    polyremoval: int | None,
    output: str,
    keeptapers: bool,
) -> np.ndarray:
    """Return taper × frequency × segment of time × segment."""
    signals = detrend(block, polyremoval)
    tapered = signals * windows.astype(signals.dtype)
    found = convert(fft.rfft(tapered, axis=1, overwrite_x=True)[:, bins], output)
    return found if keeptapers else found.mean(axis=0, keepdims=True)


def _window_starts(
    length: int, offset: int, window: int, step: int, at: np.ndarray | None, samplerate: float
) -> np.ndarray:
    """Return the first sample of each window; it may lie before the trial."""
    if at is None:
        return np.arange(count_windows(length, step)) * step - window // 2
    return np.rint(at * samplerate).astype(int) - offset - window // 2


def _pad_ends(signals: np.ndarray, starts: np.ndarray, window: int) -> tuple[np.ndarray, int]:
    """Return a trial with zeros wherever windows reach beyond it, and its new first sample."""
    low = min(0, int(starts.min(initial=0)))
    high = max(len(signals), int(starts.max(initial=0)) + window)
    return np.pad(signals, ((-low, high - len(signals)), (0, 0))), low
