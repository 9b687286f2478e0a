"""What is done to signals before their analysis: standardise, detrend, filter, rectify.

A plain array function on trial × time × channel, in one pass over the data.
"""

import numpy as np
from scipy import signal

from barrow.fields.ephys.filters import Filter
from barrow.fields.ephys.outputs import convert
from barrow.fields.ephys.trials import pieces

HILBERT = ("abs", "complex", "real", "imag", "absreal", "absimag", "angle")


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
