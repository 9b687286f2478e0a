"""Arithmetic on stretches of time, many at once."""

from typing import Any

import numpy as np
import pandas as pd


def merge(begins: Any, ends: Any) -> np.ndarray:
    """Return stretches put together where they touch: a row of begin and end for each.

    Examples
    --------
    >>> merge([0, 1, 5], [2, 3, 6]).tolist()
    [[0.0, 3.0], [5.0, 6.0]]
    """
    first, last = np.asarray(begins, float), np.asarray(ends, float)
    if not len(first):
        return np.empty((0, 2))
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order])
    is_new = np.concatenate([[True], first[1:] > last[:-1]])
    heads = np.flatnonzero(is_new)
    tails = np.concatenate([heads[1:] - 1, [len(first) - 1]])
    return np.column_stack([first[heads], last[tails]])


def total_length(stretches: np.ndarray) -> float:
    """Return the sum of the lengths."""
    return float((stretches[:, 1] - stretches[:, 0]).sum())


def count_at_once(begins: Any, ends: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and how many stretches go on from each of them to the next.

    Examples
    --------
    >>> times, counts = count_at_once([0, 1], [2, 3])
    >>> times.tolist(), counts.tolist()
    ([0.0, 1.0, 2.0, 3.0], [1, 2, 1, 0])
    """
    first, last = np.asarray(begins, float), np.asarray(ends, float)
    times = np.unique(np.concatenate([first, last]))
    change = np.zeros(len(times), np.int64)
    np.add.at(change, np.searchsorted(times, first), 1)
    np.add.at(change, np.searchsorted(times, last), -1)
    return times, np.cumsum(change)


def usual_at_once(begins: Any, ends: Any) -> float:
    """Return how many go on at once, at most, for all but a twentieth of the time any does.

    Examples
    --------
    >>> usual_at_once([0, 1, 90], [2, 3, 91])
    2.0
    """
    times, counts = count_at_once(begins, ends)
    lengths, counts = np.diff(times), counts[:-1]
    lengths, counts = lengths[counts > 0], counts[counts > 0]
    if not lengths.sum():
        return float(len(times) > 0)
    order = np.argsort(counts)
    spent = np.cumsum(lengths[order])
    return float(counts[order][np.searchsorted(spent, 0.95 * spent[-1])])


def split_free_time(tasks: pd.DataFrame, active: np.ndarray, slots: int) -> dict[str, float]:
    """Return the seconds of slots that were free while there was work, by why.

    ``overhead`` while a task was ready and had not begun, ``idle`` while none was.
    """
    if not len(active):
        return {"overhead": 0.0, "idle": 0.0}
    # A task that was ready while its inputs travelled did not wait for a slot.
    first = tasks["began"] - tasks["send_seconds"] - tasks["spill_seconds"]
    ready = np.minimum(tasks["ready"], first)
    edges = np.unique(
        np.concatenate([tasks["began"], tasks["ended"], ready, first, active.ravel()])
    )
    computing = _count(edges, tasks["began"], tasks["ended"])
    moving = _count(edges, first, tasks["began"])
    waiting = _count(edges, ready, first)
    inside = _count(edges, active[:, 0], active[:, 1]) > 0
    lengths = np.diff(edges, append=edges[-1]) * inside
    free = np.maximum(0, slots - computing)
    free -= np.minimum(free, moving)
    overhead = np.minimum(free, waiting)
    return {
        "overhead": float(overhead @ lengths),
        "idle": float((free - overhead) @ lengths),
    }


def _count(edges: np.ndarray, begins: Any, ends: Any) -> np.ndarray:
    change = np.zeros(len(edges), np.int64)
    np.add.at(change, np.searchsorted(edges, np.asarray(begins, float)), 1)
    np.add.at(change, np.searchsorted(edges, np.asarray(ends, float)), -1)
    return np.cumsum(change)
