"""Temporal update: traces of units, and the activity that would have made them.

Calcium follows activity as an autoregressive process. Its coefficients are found from the
trace; then the activity is the non-negative one that explains the trace best (OASIS).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.miniscope.compiling import compiled
from barrow.fields.miniscope.filtering import noise_fft

_ROUNDS = 10


@dataclass(frozen=True)
class Traces:
    """What a temporal update finds; all are unit × frame but the last three."""

    C: np.ndarray
    """Calcium without noise and baseline."""
    S: np.ndarray
    """Activity."""
    YrA: np.ndarray
    """The trace as it was measured."""
    b0: np.ndarray
    """Baseline of each unit."""
    g: np.ndarray
    """Coefficients of the autoregressive process of each unit."""
    sn: np.ndarray
    """Noise of each unit."""


def compute_trace(light: np.ndarray, overlap: np.ndarray, ridge: float = 1e-3) -> np.ndarray:
    """Return the traces that explain the light of all units together: unit × frame.

    Parameters
    ----------
    light
        Of each unit's footprint, without background: unit × frame.
    overlap
        What footprints have in common: unit × unit.
    """
    if not len(light):
        return np.zeros(light.shape)
    size = np.diag(overlap)
    return np.linalg.solve(overlap + np.diag(ridge * size), light) * (1 + ridge)


def update_temporal(
    YrA: np.ndarray,
    *,
    p: int = 1,
    sparse_penal: float = 1.0,
    add_lag: int = 20,
    noise_freq: float = 0.06,
    max_iters: int = 20,
    zero_thres: float = 1e-8,
) -> Traces:
    """Return traces without noise, and activity.

    Parameters
    ----------
    YrA
        Traces as measured: unit × frame.
    p
        Order of the autoregressive process: 1, or 2 for a rise that takes several frames.
    sparse_penal
        How much of its noise a trace must rise by for it to be called activity.
    add_lag
        Lags of the autocorrelation used beside ``p``.
    noise_freq
        Cycles per frame; what is faster tells the noise.
    max_iters
        How often baseline and activity are fitted in turn.
    """
    if p not in (1, 2):
        raise InputError(f"p={p!r}: the order of the autoregressive process is 1 or 2.")
    if sparse_penal < 0:
        raise InputError(f"sparse_penal={sparse_penal!r}: use 0 or more.")
    traces = np.asarray(YrA, float)
    count, frames = traces.shape
    C, S = np.zeros((count, frames)), np.zeros((count, frames))
    b0, coefficients = np.zeros(count), np.zeros((count, p))
    sn = noise_fft(traces, (noise_freq, 0.5)) if count else np.zeros(0)
    for unit in range(count):
        g = get_ar_coef(traces[unit], sn[unit], p, add_lag)
        coefficients[unit] = g
        C[unit], S[unit], b0[unit] = deconvolve(
            traces[unit], g, sn[unit], sparse_penal=sparse_penal, max_iters=max_iters
        )
    S[S < zero_thres] = 0
    return Traces(C, S, traces, b0, coefficients, sn)


def get_ar_coef(trace: np.ndarray, sn: float, p: int, add_lag: int = 20) -> np.ndarray:
    """Return the coefficients of the process by its autocovariance, free of the noise's part."""
    from scipy.linalg import lstsq, toeplitz

    lags = min(p + add_lag, len(trace) - 1)
    if lags < p + 1:
        return np.array([0.9, 0.0][:p])
    centred = trace - trace.mean()
    size = len(trace)
    cov = np.array([centred[: size - lag] @ centred[lag:] for lag in range(lags + 1)]) / size
    table = toeplitz(cov[:lags], cov[:p])
    table[np.arange(p), np.arange(p)] -= sn**2
    found = np.asarray(lstsq(table, cov[1 : lags + 1])[0])
    return _make_stable(found)


def deconvolve(
    trace: np.ndarray, g: np.ndarray, sn: float, *, sparse_penal: float = 1.0, max_iters: int = 20
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return calcium, activity and baseline of one trace."""
    decay = float(np.abs(np.roots([1, *-g])).max()) if g.any() else 0.0
    # A step of activity leaves its mark in so many frames.
    gain = np.sqrt(1 - decay**2)
    least = sparse_penal * sn * gain
    baseline = float(np.percentile(trace, 20))
    second = float(g[1]) if len(g) > 1 else 0.0
    calcium = np.zeros(len(trace))
    for _ in range(max(1, min(max_iters, _ROUNDS))):
        calcium = _oasis(trace - baseline, float(g[0]), second, least, 0.0)
        step = float(np.mean(trace - baseline - calcium))
        baseline += step
        if abs(step) < 1e-3 * max(sn, 1e-12):
            break
    activity = calcium.copy()
    activity[1:] -= g[0] * calcium[:-1]
    activity[2:] -= second * calcium[:-2]
    activity[:1] = 0
    return calcium, np.maximum(activity, 0), baseline


def _make_stable(g: np.ndarray) -> np.ndarray:
    """Return coefficients of a process that decays, and does not swing."""
    roots = np.roots([1, *-g])
    if np.iscomplexobj(roots) and np.abs(roots.imag).max() > 0:
        roots = np.full(len(g), roots.real[0])
    roots = np.clip(roots.real, 0.0, 0.995)
    return -np.poly(roots)[1:]


@compiled
def _oasis(trace: Any, g1: float, g2: float, penalty: float, least: float) -> Any:
    """Return the calcium of the best non-negative activity, by joining pools of frames."""
    size = trace.size
    rises = np.empty(size + 1)
    falls = np.empty(size + 1)
    rises[0], falls[0] = 1.0, 0.0
    rises[1] = g1
    falls[1] = g2
    for lag in range(2, size + 1):
        rises[lag] = g1 * rises[lag - 1] + g2 * rises[lag - 2]
        falls[lag] = g2 * rises[lag - 1]
    squares = np.cumsum(rises**2)
    mixed = np.cumsum(rises * falls)
    values = trace - penalty * (1 - g1 - g2)
    first, last = np.empty(size), np.empty(size)
    start, length = np.empty(size, np.int64), np.empty(size, np.int64)
    # Of each pool the products of its values with what follows from either of its first two.
    rising, falling = np.empty(size), np.empty(size)
    pools = 0
    for frame in range(size):
        start[pools], length[pools] = frame, 1
        rising[pools], falling[pools] = values[frame], 0.0
        first[pools] = last[pools] = max(0.0, values[frame]) if pools == 0 else values[frame]
        pools += 1
        while pools > 1:
            one = pools - 2
            before = last[one - 1] if one > 0 else 0.0
            coming = rises[length[one]] * first[one] + falls[length[one]] * before
            if first[pools - 1] >= coming + least:
                break
            far = length[one]
            more, less = rising[pools - 1], falling[pools - 1]
            rising[one] += rises[far] * more + rises[far - 1] * less
            falling[one] += falls[far] * more + falls[far - 1] * less
            length[one] += length[pools - 1]
            pools -= 1
            best = (rising[one] - mixed[length[one] - 1] * before) / squares[length[one] - 1]
            first[one] = max(0.0, best) if one == 0 else best
            last[one] = rises[length[one] - 1] * first[one] + falls[length[one] - 1] * before
    out = np.empty(size)
    for pool in range(pools):
        before = last[pool - 1] if pool > 0 else 0.0
        for at in range(length[pool]):
            out[start[pool] + at] = max(0.0, rises[at] * first[pool] + falls[at] * before)
    return out
