"""Remove the mean or a straight line from signals."""

from functools import lru_cache

import numpy as np

# A rest of this share of the signal does not show in a result of single precision.
SMALL = 1e-7


def detrend(trials: np.ndarray, order: int | None) -> np.ndarray:
    """Return signals without their mean (0) or their linear trend (1), in floats.

    Parameters
    ----------
    trials
        Time is the second to last axis, channel the last.
    order
        0 for the mean, 1 for the least-squares line, None to leave all as it is.

    Examples
    --------
    >>> ramp = np.arange(5.0)[:, None]
    >>> detrend(ramp, 0).ravel().tolist(), bool(abs(detrend(ramp, 1)).max() < 1e-12)
    ([-2.0, -1.0, 0.0, 1.0, 2.0], True)
    """
    dtype = working_dtype(trials.dtype)
    signals = np.asarray(trials, dtype)
    if order is None or not trials.shape[-2]:
        return signals
    basis = _basis(trials.shape[-2], order).astype(dtype)
    signals = signals - _project(basis, signals)
    rest = _project(basis, signals)
    # A large offset leaves a rest of its rounding: once more takes it away.
    if dtype == np.float32 and np.abs(rest).max() > SMALL * np.abs(signals[..., :8, :]).max():
        signals -= rest
    return np.asarray(signals)


def working_dtype(dtype: np.dtype) -> np.dtype:
    """Return the floats that signals of a type are computed with: doubles only for doubles.

    Examples
    --------
    >>> working_dtype(np.dtype("i2")), working_dtype(np.dtype("f8"))
    (dtype('float32'), dtype('float64'))
    """
    if dtype.kind == "c":
        return dtype
    is_exact = dtype.kind == "f" and dtype.itemsize <= 4
    is_short = dtype.kind in "iub" and dtype.itemsize <= 2
    return np.dtype(np.float32 if is_exact or is_short else np.float64)


def _project(basis: np.ndarray, signals: np.ndarray) -> np.ndarray:
    """Return the part of signals that is a polynomial; a mean has just one sample."""
    weights = basis @ signals
    if len(basis) == 1:
        return np.asarray(weights * basis[0, 0])
    return np.asarray(basis.T @ weights)


@lru_cache(maxsize=64)
def _basis(length: int, order: int) -> np.ndarray:
    """Return orthonormal polynomials up to an order."""
    rows = [np.full(length, length**-0.5)]
    if order == 1 and length > 1:
        ramp = np.arange(length) - (length - 1) / 2
        rows.append(ramp / np.linalg.norm(ramp))
    return np.array(rows)
