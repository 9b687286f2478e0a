"""Temporal update: traces of units, and the activity that would have made them.

Calcium follows activity as an autoregressive process. Its decay is that of a unit; its rise is
that of the indicator, and found from all units together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from barrow.errors import InputError
from barrow.fields.miniscope.compiling import for_each
from barrow.fields.miniscope.deconvolving import Process, deconvolve
from barrow.fields.miniscope.filtering import noise_fft, rows_at_once

_FIT_UNITS = 16
"""So many units tell the rise; of more, those that stand out most from their noise."""
_FIT_FRAMES = 4096
"""So much of a trace tells its process; of a longer one the part with most activity is used."""
_ROUGHLY = 1e-3
"""How low the solver's barrier must be for processes to be compared."""
_DECAYS = (0.5, 0.7, 0.85, 1.0, 1.2, 1.4)
_RISES = (0.0, 0.2, 0.35, 0.5, 0.6, 0.7, 0.8)


@dataclass(frozen=True)
class Traces:
    """What a temporal update finds; all are unit × frame but the last four."""

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
    m: np.ndarray
    """How activity goes into that process: its shares in its own frame and the next two."""
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
    noise_freq: float = 0.25,
    max_iters: int = 50,
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
        The price of activity, in units of what noise alone would earn by it.
    add_lag
        Lags of the autocorrelation used beside ``p``.
    noise_freq
        Cycles per frame; what is faster tells the noise. Calcium reaches to 0.2 or so: noise
        that holds some of it hides the rise.
    max_iters
        Steps of the solver at most, for each trace; about 20 are enough.
    """
    if p not in (1, 2):
        raise InputError(f"p={p!r}: the order of the autoregressive process is 1 or 2.")
    if sparse_penal < 0:
        raise InputError(f"sparse_penal={sparse_penal!r}: use 0 or more.")
    traces = np.asarray(YrA, float)
    count, frames = traces.shape
    C, S = np.zeros((count, frames)), np.zeros((count, frames))
    b0, coefficients, shares = np.zeros(count), np.zeros((count, p)), np.zeros((count, 3))
    sn = noise_fft(traces, (noise_freq, 0.5)) if count else np.zeros(0)
    processes = fit_processes(traces, sn, p, add_lag)

    def update(unit: int) -> None:
        process = processes[unit]
        coefficients[unit], shares[unit] = process.g[:p], process.m
        C[unit], S[unit], b0[unit] = deconvolve(
            traces[unit], process, sn[unit], sparse_penal=sparse_penal, max_iters=max_iters
        )

    for_each(update, range(count))
    S[S < zero_thres] = 0
    return Traces(C, S, traces, b0, coefficients, shares, sn)


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


def fit_processes(traces: np.ndarray, sn: np.ndarray, p: int, add_lag: int = 20) -> list[Process]:
    """Return for each unit the process under which activity is sparse and explains the trace.

    The autocovariance takes bursts for a slow decay. It is where the search begins: decay and
    rise are then those for which the residual, in units of the noise, and the logarithm of the
    activity are least together. Too slow a decay leaves residuals, too quick a one activity
    that is not there.

    How quickly calcium rises, and when within a frame, are properties of indicator and camera.
    A dim trace hardly tells them; all units together do.
    """
    lively = (sn > 0) & (np.ptp(traces, axis=1) > 0) if len(traces) else np.zeros(0, bool)
    if traces.shape[1] < 16 or not lively.any():
        return [
            Process(_guess_decay(trace, s, add_lag)) for trace, s in zip(traces, sn, strict=True)
        ]
    clear = np.where(lively, traces.var(axis=1) / np.where(lively, sn, 1) ** 2, -1)
    chosen = np.argsort(-clear, kind="stable")[: min(_FIT_UNITS, int(lively.sum()))]
    parts = [_liveliest(traces[unit], _FIT_FRAMES) / sn[unit] for unit in chosen]
    shared = Process(float(np.median([_guess_decay(traces[u], sn[u], add_lag) for u in chosen])))
    for width in (1.0, 0.5, 0.25):
        shared = _choose(parts, _vary_decay(shared, width))
        shared = _choose(parts, _vary_rise(shared, width, p))

    def fit(unit: int) -> Process:
        if not lively[unit]:
            return shared
        part = _liveliest(traces[unit], _FIT_FRAMES) / sn[unit]
        return _choose([part], _vary_decay(shared, 0.5))

    return for_each(fit, range(len(traces)))


def _guess_decay(trace: np.ndarray, sn: float, add_lag: int) -> float:
    start = get_ar_coef(trace, sn, 1, add_lag)[0]
    return float(-1 / np.log(np.clip(start, 0.3, 0.99)))


def _vary_decay(process: Process, width: float) -> list[Process]:
    decays = [process.decay * factor**width for factor in _DECAYS]
    # A decay as quick as the rise is no decay.
    return [
        Process(decay, process.rise, process.exposed)
        for decay in decays
        if process.rise < 0.95 * np.exp(-1 / decay)
    ]


def _vary_rise(process: Process, width: float, p: int) -> list[Process]:
    near = process.rise
    step = 0.14 * width
    rises: Sequence[float] = _RISES if width == 1 else (near - step, near, near + step)
    most = 0.95 * float(np.exp(-1 / process.decay))
    rises = [rise for rise in rises if 0 <= rise < most] if p == 2 else [0.0]
    return [Process(process.decay, rise, exposed) for rise in rises for exposed in (False, True)]


def _choose(parts: Sequence[np.ndarray], processes: Iterable[Process]) -> Process:
    """Return the process that explains all these traces best; their noise is 1."""

    def cost(process: Process) -> float:
        total = 0.0
        for part in parts:
            calcium, activity, baseline = deconvolve(part, process, 1.0, enough=_ROUGHLY)
            left = part - baseline - calcium
            total += left @ left / 2 + np.log(activity * process.size + 0.3).sum()
        return float(total)

    return min(processes, key=cost)


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


def _make_stable(g: np.ndarray) -> np.ndarray:
    """Return coefficients of a process that decays, and does not swing."""
    roots = np.roots([1, *-g])
    if np.iscomplexobj(roots) and np.abs(roots.imag).max() > 0:
        roots = np.full(len(g), roots.real[0])
    roots = np.clip(roots.real, 0.0, 0.995)
    return -np.poly(roots)[1:]
