"""Second-order sections over many signals at once, compiled.

The operations and their order are those of ``scipy.signal.sosfilt``, so the answers are the
same bit for bit; signals lie side by side, so that one instruction serves several. Only to
be imported where there is enough to do: it takes Numba a moment to come up.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numba import boolean, float32, float64, int64, njit, types, void

# Signals that are worked on together: their states fit the registers and the nearest cache.
LANES = 16


def _filter_lanes(
    trials: np.ndarray,
    sections: np.ndarray,
    first_states: np.ndarray,
    edge: int,
    is_twopass: bool,
    answer: np.ndarray,
) -> None:
    n_trials, n_samples, n_channels = trials.shape
    n_sections, n_signals = sections.shape[0], n_trials * n_channels
    total = n_samples + 2 * edge
    signals = np.zeros((total, LANES))
    states = np.empty((n_sections, 2, LANES))
    which, where = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    for low in range(0, n_signals, LANES):
        count = min(LANES, n_signals - low)
        width = min(LANES, -(-count // 4) * 4)  # whole vector registers
        for lane in range(count):
            which[lane], where[lane] = divmod(low + lane, n_channels)
        for t in range(n_samples):
            for lane in range(count):
                signals[edge + t, lane] = trials[which[lane], t, where[lane]]
        # Mirrored in the ends, with the precision of the input, as SciPy does.
        for lane in range(count):
            source = trials[which[lane], :, where[lane]]
            first, last = source[0] + source[0], source[n_samples - 1] + source[n_samples - 1]
            for t in range(edge):
                signals[t, lane] = first - source[edge - t]
                signals[edge + n_samples + t, lane] = last - source[n_samples - 2 - t]
        for is_back in range(2 if is_twopass else 1):
            begin = total - 1 if is_back else 0
            for s in range(n_sections):
                for part in range(2):
                    for lane in range(width):
                        state = first_states[s, part] * signals[begin, lane] if is_twopass else 0.0
                        states[s, part, lane] = state
            for step in range(total):
                row = signals[total - 1 - step if is_back else step]
                for s in range(n_sections):
                    b0, b1, b2 = sections[s, 0], sections[s, 1], sections[s, 2]
                    a1, a2 = sections[s, 4], sections[s, 5]
                    z0, z1 = states[s, 0], states[s, 1]
                    for lane in range(width):
                        x = row[lane]
                        y = b0 * x + z0[lane]
                        z0[lane] = b1 * x - a1 * y + z1[lane]
                        z1[lane] = b2 * x - a2 * y
                        row[lane] = y
        for t in range(n_samples):
            for lane in range(count):
                answer[which[lane], t, where[lane]] = signals[edge + t, lane]


@lru_cache(maxsize=2)
def _compile(dtype: np.dtype) -> Callable[..., None]:
    """Return the function for single or double precision, whatever the strides of its trials."""
    kind = float32 if dtype == np.float32 else float64
    trials = types.Array(kind, 3, "A", readonly=True)
    signature = void(trials, float64[:, ::1], float64[:, ::1], int64, boolean, float32[:, :, ::1])
    made: Callable[..., None] = njit(signature, nogil=True, cache=True)(_filter_lanes)
    return made


def filter_sections(
    trials: np.ndarray, sections: np.ndarray, first_states: np.ndarray, edge: int, is_twopass: bool
) -> np.ndarray:
    """Return filtered signals, in single precision.

    Parameters
    ----------
    trials
        Trial × time × channel, of floats.
    sections
        Second-order sections, one in each row.
    first_states
        States of the sections for a signal that was always 1; used if two-pass.
    edge
        Samples by which each end is extended.
    is_twopass
        Whether to filter forwards and then backwards.

    Examples
    --------
    >>> from scipy import signal
    >>> sos = signal.butter(2, 0.2, output="sos")
    >>> noise = np.random.default_rng(0).normal(size=(3, 50, 2)).astype("f4")
    >>> ours = filter_sections(noise, sos, signal.sosfilt_zi(sos), 9, True)
    >>> bool((ours == signal.sosfiltfilt(sos, noise, axis=1).astype("f4")).all())
    True
    """
    answer = np.empty(trials.shape, np.float32)
    _compile(trials.dtype)(trials, sections, first_states, edge, is_twopass, answer)
    return answer
