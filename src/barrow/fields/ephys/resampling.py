"""Other sample rates."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy import signal

from barrow.errors import InputError
from barrow.fields.ephys.filters import Filter
from barrow.fields.ephys.sinc import design_sinc
from barrow.fields.ephys.trials import pieces


def count_samples(length: int, samplerate: float, new: float) -> int:
    """Return the samples of a trial at a new rate.

    Examples
    --------
    >>> count_samples(1000, 1000, 600), count_samples(5, 1000, 500)
    (600, 3)
    """
    up, down = find_ratio(samplerate, new)
    return -(-length * up // down)


def find_ratio(samplerate: float, new: float) -> tuple[int, int]:
    """Return two whole numbers whose ratio is that of the rates."""
    ratio = Fraction(new / samplerate).limit_denominator()
    return ratio.numerator, ratio.denominator


def resample(
    trials: np.ndarray,
    lengths: np.ndarray | None = None,
    *,
    samplerate: float,
    new: float,
    lpfreq: float | None = None,
    order: int = 1000,
) -> np.ndarray:
    """Return trials at any lower rate, by a polyphase filter.

    Parameters
    ----------
    lpfreq
        Cut-off of the filter against aliases; by default half the new rate.
    order
        Its order.

    Examples
    --------
    >>> resample(np.zeros((1, 100, 2), "f4"), samplerate=1000, new=300, order=50).shape
    (1, 30, 2)
    """
    up, down = find_ratio(samplerate, new)
    edge = (0.5 * new if lpfreq is None else lpfreq) / samplerate
    kernel = design_sinc("hamming", order, [edge / up])
    return _each_length(
        trials,
        lengths,
        lambda found: signal.resample_poly(found, up, down, axis=1, window=kernel),
        lambda length: count_samples(length, samplerate, new),
    )


def downsample(
    trials: np.ndarray,
    lengths: np.ndarray | None = None,
    *,
    samplerate: float,
    new: float,
    lowpass: Filter | None = None,
) -> np.ndarray:
    """Return every n-th sample, after a low-pass filter if one is given.

    Examples
    --------
    >>> downsample(np.arange(6.0)[None, :, None], samplerate=1000, new=500)[0, :, 0].tolist()
    [0.0, 2.0, 4.0]
    """
    if samplerate % new:
        raise InputError(
            f"resamplefs={new:g} is no whole part of {samplerate:g} Hz. Use method='resample'."
        )
    skip = int(samplerate // new)

    def take(found: np.ndarray) -> np.ndarray:
        if lowpass is not None:
            found = lowpass(found).astype(np.float32)
        return found[:, ::skip]

    return _each_length(trials, lengths, take, lambda length: -(-length // skip))


def _each_length(
    trials: np.ndarray,
    lengths: np.ndarray | None,
    run: Callable[[np.ndarray], np.ndarray],
    count: Callable[[int], int],
) -> np.ndarray:
    n_trials, n_samples, n_channels = trials.shape
    answer = np.full((n_trials, count(n_samples), n_channels), np.nan, np.float32)
    for which, channels, found in pieces(trials, lengths):
        answer[which, : count(found.shape[1]), channels] = run(found)
    return answer
