"""Account for the time of workers: what each second of each of their threads was spent on.

Pure arithmetic on intervals. At every instant each slot, a thread of a worker, is in exactly
one state, so the parts add up to slots × wall by construction, and nothing is left over:

- compute, while a task runs in it;
- transfer and spill, while it is free and a task of the program waits for inputs from another
  worker or from disk;
- overhead, while it is free though a task is ready or handed out: scheduler and messages;
- idle, while nothing waits;
- starting, while the slot is not there: its worker has not come yet, or has left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Intervals = np.ndarray
"""Pairs of begin and end, a row for each."""

STATES = ("compute", "transfer", "spill", "overhead", "idle", "starting")


@dataclass(frozen=True)
class Observed:
    """When things happened, as intervals of time."""

    slots: Intervals
    """When a thread of a worker was there, one interval for each thread."""
    compute: Intervals
    transfer: Intervals
    spill: Intervals
    waiting: Intervals
    """From the time a task could have begun to the time it was computed."""


def account(observed: Observed, began: float, ended: float) -> dict[str, float]:
    """Return the seconds of all slots in each state, between two times.

    Examples
    --------
    Two threads for ten seconds: one task runs for 6 s, another waits 1 s and runs for 4 s.

    >>> none = np.empty((0, 2))
    >>> seen = Observed(
    ...     slots=np.array([[0.0, 10], [0, 10]]), compute=np.array([[0.0, 6], [1, 5]]),
    ...     transfer=none, spill=none, waiting=np.array([[0.0, 1]]),
    ... )
    >>> {state: seconds for state, seconds in account(seen, 0, 10).items() if seconds}
    {'compute': 10.0, 'overhead': 1.0, 'idle': 9.0}
    """
    kinds = (
        observed.slots,
        observed.compute,
        observed.transfer,
        observed.spill,
        observed.waiting,
    )
    times, counts = _count(kinds, began, ended)
    lengths = np.diff(times)
    there, computing, receiving, unspilling, waiting = counts
    # A thread that computes is there, even if its worker was not seen to come.
    most = int(np.maximum(there, computing).max(initial=0))
    computing = np.minimum(computing, most)
    there = np.maximum(there, computing)
    spent = {"compute": computing}
    free = there - computing
    for state, wanted in (
        ("transfer", receiving),
        ("spill", unspilling),
        ("overhead", waiting),
    ):
        spent[state] = np.minimum(free, wanted)
        free = free - spent[state]
    spent["idle"] = free
    spent["starting"] = most - there
    return {state: float(spent[state] @ lengths) for state in STATES}


def _count(
    kinds: Sequence[Intervals], began: float, ended: float
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return all times at which anything changes, and how many of each kind go on between."""
    clipped = [np.clip(kind, began, ended) for kind in kinds]
    times = np.unique(np.concatenate([[began, ended], *(kind.ravel() for kind in clipped)]))
    counts = []
    for kind in clipped:
        steps = np.zeros(len(times), np.int64)
        np.add.at(steps, np.searchsorted(times, kind[:, 0]), 1)
        np.add.at(steps, np.searchsorted(times, kind[:, 1]), -1)
        counts.append(np.cumsum(steps)[:-1])
    return times, counts
