"""Temporal update: traces of units, and the activity that would have made them.

Calcium follows activity as an autoregressive process. Its coefficients are found from the
trace; then the activity is the non-negative one that explains the trace best (OASIS).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.miniscope.compiling import compiled
from barrow.fields.miniscope.filtering import noise_fft, rows_at_once

_ROUNDS = 10
_FIT_FRAMES = 4096
"""So much of a trace tells its process; of a longer one the part with most activity is used."""
_DECAYS = (0.5, 0.7, 0.85, 1.0, 1.2, 1.4)
_RISES = (0.0, 0.2, 0.35, 0.5, 0.6, 0.7, 0.8)


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
    from scipy.linalg import lu_factor, lu_solve

    traces = np.zeros(light.shape)
    if not len(light):
        return traces
    size = np.diag(overlap)
    # A unit without a footprint has no light; its trace is 0.
    factors = lu_factor(overlap + np.diag(np.where(size > 0, ridge * size, 1.0)))
    for frames in rows_at_once(light.shape[1], len(light)):
        traces[:, frames] = lu_solve(factors, light[:, frames]) * (1 + ridge)
    return traces


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
        g = fit_process(traces[unit], sn[unit], p, add_lag)
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


def fit_process(trace: np.ndarray, sn: float, p: int, add_lag: int = 20) -> np.ndarray:
    """Return the coefficients under which activity is sparse and explains the trace.

    The autocovariance takes bursts for a slow decay. It is where the search begins: decay and
    rise are then those for which the residual, in units of the noise, and the logarithm of the
    activity are least together. Too slow a decay leaves residuals, too quick a one activity
    that is not there.
    """
    start = get_ar_coef(trace, sn, 1, add_lag)[0]
    if sn <= 0 or not np.ptp(trace) > 0 or len(trace) < 16:
        return np.array([start, 0.0][:p])
    part = _liveliest(trace, _FIT_FRAMES)
    decay = -1 / np.log(np.clip(start, 0.3, 0.99))
    rise = 0.0

    def cost(frames: float, rise: float) -> float:
        keep = float(np.exp(-1 / frames))
        g = np.array([keep + rise, -keep * rise])
        calcium, activity, baseline = deconvolve(part, g, sn, sparse_penal=0, max_iters=3)
        left = part - baseline - calcium
        return float(left @ left / (2 * sn**2) + np.log(activity + 0.3 * sn).sum())

    for width in (1.0, 0.5):
        decays = [decay * factor**width for factor in _DECAYS]
        decay = min(decays, key=lambda frames: cost(frames, rise))
        if p == 2:
            rises = _RISES if width == 1 else (rise - 0.07, rise, rise + 0.07)
            most = float(np.exp(-1 / decay))
            rise = min((r for r in rises if 0 <= r < most), key=lambda r: cost(decay, r))
    keep = float(np.exp(-1 / decay))
    return np.array([keep + rise, -keep * rise][:p]) if p == 2 else np.array([keep])


def _liveliest(trace: np.ndarray, frames: int) -> np.ndarray:
    """Return the part of a trace that varies most, one of those that lie side by side."""
    if len(trace) <= frames:
        return trace
    parts = [trace[start : start + frames] for start in range(0, len(trace) - frames + 1, frames)]
    return parts[int(np.argmax([part.var() for part in parts]))]


def keep_active(YrA: np.ndarray, least_skew: float = 0.9) -> np.ndarray:
    """Return which traces rise and fall as calcium does: up quickly, for a short time.

    Neuropil, motion and noise swing both ways alike; the third moment of a trace tells them
    from cells.
    """
    skew = np.empty(len(YrA))
    for rows in rows_at_once(*YrA.shape):
        centred = YrA[rows] - YrA[rows].mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1))
        skew[rows] = (centred**3).mean(axis=1) / np.where(spread > 0, spread, 1) ** 3
    return np.asarray(skew >= least_skew)


def deconvolve(
    trace: np.ndarray, g: np.ndarray, sn: float, *, sparse_penal: float = 1.0, max_iters: int = 20
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return calcium, activity and baseline of one trace."""
    least = 0.0
    if sparse_penal and g.any():
        # The slower the decay, the more frames tell of a step, and the less noise is in it.
        decay = min(1.0, float(np.abs(np.roots([1, *-g])).max()))
        least = sparse_penal * sn * np.sqrt(1 - decay**2)
    second = float(g[1]) if len(g) > 1 else 0.0
    start = float(np.percentile(trace, 20))
    rounds = max(1, min(max_iters, _ROUNDS))
    calcium, baseline = _fit(trace, float(g[0]), second, least, start, 1e-3 * sn, rounds)
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
def _oasis(trace: Any, g1: float, g2: float, penalty: float) -> Any:
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
            if first[pools - 1] >= coming:
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


@compiled
def _fit(
    trace: Any, g1: float, g2: float, penalty: float, baseline: float, enough: float, rounds: int
) -> Any:
    """Return calcium and baseline, each fitted to what the other leaves."""
    calcium = np.zeros(trace.size)
    for _ in range(rounds):
        calcium = _oasis(trace - baseline, g1, g2, penalty)
        step = np.mean(trace - baseline - calcium)
        baseline += step
        if abs(step) < enough:
            break
    return calcium, baseline
