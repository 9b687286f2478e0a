"""Which trials, channels, times and frequencies are meant.

Words and numbers in, indices out.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.frequencies import nearest

PERIODS = ("maxperiod", "minperiod", "prestim", "poststim")


def pick(wanted: Any, labels: np.ndarray, what: str) -> np.ndarray | None:
    """Return the indices that are meant; None for all.

    Examples
    --------
    >>> pick(["b", "a"], np.array(["a", "b", "c"]), "channel").tolist()
    [1, 0]
    >>> pick([10, 30], np.arange(0.0, 60, 10), "freq").tolist()
    [1, 2, 3]
    >>> pick("all", np.arange(3), "trials") is None
    True
    """
    count = len(labels)
    if wanted is None or (isinstance(wanted, str) and wanted == "all"):
        return None
    if what == "freq":
        return _pick_frequencies(wanted, labels)
    if isinstance(wanted, slice):
        return np.arange(count)[wanted]
    names = np.atleast_1d(np.asarray(wanted))
    if names.dtype == bool and len(names) == count:
        return np.flatnonzero(names)
    if names.dtype.kind in "US":
        known = {str(label): number for number, label in enumerate(labels)}
        missing = [str(name) for name in names if str(name) not in known]
        if missing:
            some = ", ".join(map(str, labels[:5])) + (", ..." if count > 5 else "")
            raise InputError(f"{what}={missing[0]!r} does not exist. There are {some}.")
        return np.array([known[str(name)] for name in names])
    if names.dtype.kind not in "iu" or names.ndim != 1:
        raise InputError(f"{what}={wanted!r} is neither names nor numbers.")
    if names.size and not (-count <= names.min() and names.max() < count):
        raise InputError(f"{what}={wanted!r}: there are {count}, counted from 0 to {count - 1}.")
    return names % count if count else names


def _pick_frequencies(wanted: Any, freqs: np.ndarray) -> np.ndarray:
    try:
        limits = np.atleast_1d(np.asarray(wanted, float))
    except (TypeError, ValueError):
        limits = np.empty(0)
    if limits.size == 1:
        return nearest(freqs, limits)
    if limits.size != 2:
        raise InputError(f"frequency={wanted!r}: give one frequency, or lowest and highest.")
    found = np.flatnonzero((freqs >= limits[0]) & (freqs <= limits[1]))
    if not found.size:
        raise InputError(
            f"frequency={wanted!r}: there is none between {freqs.min():g} and {freqs.max():g} Hz."
        )
    return found


def find_window(latency: Any, intervals: np.ndarray) -> tuple[float, float]:
    """Return first and last time in seconds.

    Parameters
    ----------
    latency
        Two times, or a word.
    intervals
        Time of the first and of the last sample of each trial.

    Examples
    --------
    >>> intervals = np.array([[-1.0, 2.0], [-0.5, 3.0]])
    >>> find_window("minperiod", intervals), find_window("poststim", intervals)
    ((-0.5, 2.0), (0.0, 3.0))
    """
    starts, ends = intervals.T
    if isinstance(latency, str):
        if latency not in PERIODS:
            raise InputError(f"latency={latency!r} is unknown. Use {', '.join(PERIODS)}.")
        low, high = {
            "maxperiod": (starts.min(), ends.max()),
            "minperiod": (starts.max(), ends.min()),
            "prestim": (starts.min(), min(0.0, ends.max())),
            "poststim": (max(0.0, starts.min()), ends.max()),
        }[latency]
    else:
        try:
            low, high = (float(value) for value in latency)
        except (TypeError, ValueError):
            raise InputError(f"latency={latency!r}: give first and last time.") from None
    if low > high or low > ends.max() or high < starts.min():
        raise InputError(
            f"latency={latency!r}: no trial has samples from {low:g} to {high:g} s. They lie "
            f"between {starts.min():g} and {ends.max():g} s."
        )
    return float(low), float(high)


def cut_latency(
    window: Sequence[float], lengths: np.ndarray, offsets: np.ndarray, samplerate: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first sample inside a window, and how many there are, for each trial."""
    first = np.ceil(window[0] * samplerate - offsets - 1e-6).astype(int)
    last = np.floor(window[1] * samplerate - offsets + 1e-6).astype(int)
    first, stop = np.clip(first, 0, lengths), np.clip(last + 1, 0, lengths)
    return first, np.maximum(stop - first, 0)
