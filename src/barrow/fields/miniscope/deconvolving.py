"""Deconvolution: the activity that would have made a trace.

Calcium rises and decays after activity, and a frame shows the light of its whole exposure. The
activity is the non-negative one that explains the trace best; baseline and activity are found
together. One trace at a time: no movie, no footprints.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from barrow.fields.miniscope.compiling import compiled

_NOTHING = 1e-3
"""Activity below this part of its own noise is none: the solver never quite reaches 0."""


@dataclass(frozen=True)
class Process:
    """How calcium follows activity."""

    decay: float
    """Frames after which calcium has fallen to 1/e."""
    rise: float = 0.0
    """What is left after a frame of the distance to the peak; 0 if it is reached at once."""
    exposed: bool = False
    """Whether activity falls anywhere within the exposure of its frame, not at its beginning.

    Then most of the light of a spike comes a frame later, and activity that is read off the
    light of the frame alone is late.
    """

    @property
    def g(self) -> np.ndarray:
        """Coefficients of the autoregressive process."""
        keep = float(np.exp(-1 / self.decay))
        return np.array([keep + self.rise, -keep * self.rise])

    @cached_property
    def m(self) -> np.ndarray:
        """How the activity of a frame goes into the process, in that frame and the next two.

        The mean of exp(-t) over all places of a spike in its frame, and over the exposure of
        each frame, is a geometric series but for the first frame.
        """
        if not self.exposed:
            return np.array([1.0, 0.0, 0.0])
        keep, rise = float(np.exp(-1 / self.decay)), self.rise
        first, later = _expose(1 / self.decay)
        if rise > 0:
            quick_first, quick_later = _expose(-np.log(rise))
        else:
            quick_first, quick_later = 0.0, 0.0
        shares = (first - quick_first) * np.array([1, -keep - rise, keep * rise])
        shares += later * keep * np.array([0, 1, -rise])
        shares -= quick_later * rise * np.array([0, 1, -keep])
        return np.asarray(shares / shares.sum())

    @cached_property
    def size(self) -> float:
        """Length of the response to activity of 1; noise of activity is that of light by it."""
        from scipy.signal import lfilter

        impulse = np.zeros(int(8 * self.decay) + 8)
        impulse[0] = 1
        return float(np.linalg.norm(lfilter(self.m, [1, *-self.g], impulse)))


def deconvolve(
    trace: np.ndarray,
    process: Process,
    sn: float,
    *,
    sparse_penal: float = 1.0,
    max_iters: int = 50,
    enough: float = 1e-6,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return calcium, activity and baseline of one trace.

    Activity is paid for by ``sparse_penal`` times what noise alone would earn. The baseline is
    that of a price of 1 always: were activity free, it could take the baseline's place.

    Parameters
    ----------
    sn
        Noise of the trace.
    max_iters
        Steps of the solver at most.
    enough
        Where the solver stops: how low its barrier is, in squares of the noise.
    """
    reach = float(np.ptp(trace)) if len(trace) else 0.0
    if not reach > 0:
        return np.zeros(len(trace)), np.zeros(len(trace)), float(trace[0]) if len(trace) else 0.0
    unit = max(sn, 1e-4 * reach)
    start = float(np.percentile(trace, 20))
    values = (trace - start) / unit
    g, m = process.g, process.m
    calcium, activity, baseline = _solve(values, g, m, process.size, 0.0, True, enough, max_iters)
    if sparse_penal != 1:
        price = sparse_penal * process.size
        calcium, activity, _ = _solve(values, g, m, price, baseline, False, enough, max_iters)
    activity[activity < _NOTHING / process.size] = 0
    return calcium * unit, activity * unit, start + baseline * unit


def _expose(speed: float) -> tuple[float, float]:
    """Return the light of exp(-speed t) in the frame of a spike, and the factor of later ones."""
    first = (speed - 1 + np.exp(-speed)) / speed**2
    return float(first), float((2 * np.cosh(speed) - 2) / speed**2)


@compiled
def _solve(
    values: Any,
    g: Any,
    m: Any,
    price: float,
    baseline: float,
    is_free: bool,
    enough: float,
    steps: int,
) -> Any:
    """Return calcium, activity and baseline that explain values whose noise is 1.

    Newton's method with a barrier that keeps activity above 0 and is lowered with each step.
    The state is the response of the process alone: light and activity are sums over three
    frames of it, so that a step is one pass over a matrix of five diagonals.
    """
    g1, g2 = g
    m0, m1, m2 = m
    # Two frames before the first stand for what happened before; nothing was seen of them.
    size = values.size + 2
    activity = np.full(size, 0.3)
    state = np.zeros(size)
    for t in range(size):
        state[t] = activity[t]
        if t > 0:
            state[t] += g1 * state[t - 1]
        if t > 1:
            state[t] += g2 * state[t - 2]
    seen = np.ones(size)
    seen[:2] = 0
    border = _spread_back(seen, m0, m1, m2)
    barrier = 1.0
    for _ in range(steps):
        left = _gather(state, m0, m1, m2)
        left[2:] += baseline - values
        left[:2] = 0
        slope = _spread_back(left, m0, m1, m2)
        slope += _spread_back(price - barrier / activity, 1.0, -g1, -g2)
        main, near, far = _factorise(seen, barrier / activity**2, g1, g2, m0, m1, m2)
        step, beside, rise = -slope, border.copy(), 0.0
        _substitute(main, near, far, step, beside)
        if is_free:
            rest = values.size - border @ beside
            if rest > 1e-9 * values.size:
                rise = (-left.sum() - border @ step) / rest
            step -= rise * beside
        change = _gather(step, 1.0, -g1, -g2)
        length = 1.0
        for t in range(size):
            if change[t] < 0:
                length = min(length, -0.95 * activity[t] / change[t])
        state += length * step
        activity += length * change
        baseline += length * rise
        if length > 0.9:
            barrier *= 0.1
        elif length > 0.5:
            barrier *= 0.3
        if barrier < enough:
            break
    return _gather(state, m0, m1, m2)[2:], activity[2:], baseline


@compiled
def _gather(values: Any, now: float, before: float, earlier: float) -> Any:
    """Return the weighted sum of each value and the two before it."""
    out = now * values
    out[1:] += before * values[:-1]
    out[2:] += earlier * values[:-2]
    return out


@compiled
def _spread_back(values: Any, now: float, before: float, earlier: float) -> Any:
    """Return the transpose of ``_gather``."""
    out = now * values
    out[:-1] += before * values[1:]
    out[:-2] += earlier * values[2:]
    return out


@compiled
def _factorise(seen: Any, curve: Any, g1: float, g2: float, m0: float, m1: float, m2: float) -> Any:
    """Return the factors of the curvature: its diagonal, inverted, and the two below it."""
    size = seen.size
    main, near, far = np.zeros(size), np.zeros(size), np.zeros(size)
    for t in range(size):
        main[t] += seen[t] * m0 * m0 + curve[t]
        if t > 0:
            main[t - 1] += seen[t] * m1 * m1 + curve[t] * g1 * g1
            near[t - 1] += seen[t] * m0 * m1 - curve[t] * g1
        if t > 1:
            main[t - 2] += seen[t] * m2 * m2 + curve[t] * g2 * g2
            near[t - 2] += seen[t] * m1 * m2 + curve[t] * g1 * g2
            far[t - 2] += seen[t] * m0 * m2 - curve[t] * g2
    for t in range(size):
        main[t] = 1 / main[t]
        if t + 1 < size:
            share = near[t] * main[t]
            main[t + 1] -= share * near[t]
            if t + 2 < size:
                near[t + 1] -= share * far[t]
                main[t + 2] -= far[t] * far[t] * main[t]
                far[t] *= main[t]
            near[t] = share
    return main, near, far


@compiled
def _substitute(main: Any, near: Any, far: Any, one: Any, other: Any) -> None:
    """Put the solutions of a system that ``_factorise`` prepared in place of two right sides."""
    # Side by side: a frame waits for the one before it, and both sides can wait together.
    size = one.size
    for t in range(1, size):
        one[t] -= near[t - 1] * one[t - 1]
        other[t] -= near[t - 1] * other[t - 1]
        if t > 1:
            one[t] -= far[t - 2] * one[t - 2]
            other[t] -= far[t - 2] * other[t - 2]
    one *= main
    other *= main
    for t in range(size - 2, -1, -1):
        one[t] -= near[t] * one[t + 1]
        other[t] -= near[t] * other[t + 1]
        if t + 2 < size:
            one[t] -= far[t] * one[t + 2]
            other[t] -= far[t] * other[t + 2]
