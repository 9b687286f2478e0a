"""What waited for what: as the scheduler told it, or from the moments at which tasks could begin.

A record has no edges of a graph. But a task that waits for others can begin when the last of
them ends: a scheduler that is watched names that one. Where none does, and for what a client
hands in when it has seen a result, whoever ended just before is the one it waited for.
"""

import numpy as np

from barrow.reporting.tables import Tables, numbers
from barrow.reporting.tasks import Tasks

SOON_SECONDS = 0.05
"""After the end of a task, when the scheduler tells that another one can begin."""
CLOCK_SECONDS = 0.002
"""By which clocks of processes of one machine may differ."""


def find_order(
    record: Tables, tasks: Tasks, places: np.ndarray, first: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each task the one it waits for (-1 for none) and how long after it can begin.

    Both are empty if all tasks can begin at once. Tasks come in the order of their beginning,
    ``places`` are those of :func:`find_rows`.
    """
    if tasks.has_phases:
        return _order_of_stages(tasks)
    ready, told = _read_ready(record, tasks, places)
    order = np.argsort(tasks.ended, kind="stable")
    ends = tasks.ended[order]
    # A task never waits for one that began after it.
    place = np.searchsorted(ends, ready + CLOCK_SECONDS, side="right") - 1
    before = np.where(place >= 0, order[np.maximum(place, 0)], -1)
    delay = np.where(place >= 0, ready - ends[np.maximum(place, 0)], ready - first)
    before = np.where(before < np.arange(len(tasks)), before, -1)
    # Long after the last end: the client has handed it in by itself. If somebody was at work
    # then, it did not wait for him.
    running = _count_running(tasks, ready)
    is_independent = (before < 0) | ((delay > SOON_SECONDS) & (running > 0))
    # By the time that the scheduler has heard of an end, short tasks have ended after it.
    is_told = told >= 0
    delay = np.where(is_told, ready - tasks.ended[told], delay)
    after = np.where(is_told, told, np.where(is_independent, -1, before)).astype(np.int64)
    delays = np.where(after < 0, ready - first, delay)
    delays = np.where(delays > SOON_SECONDS, delays, 0.0)
    if (after < 0).all() and not delays.any():
        return np.zeros(0, np.int64), np.zeros(0)
    return after, delays


def _order_of_stages(tasks: Tasks) -> tuple[np.ndarray, np.ndarray]:
    """Stages of a pipeline follow one another; the chunks of one wait for nobody."""
    steps = np.array(tasks.step, object)
    if len(set(tasks.step)) == 1:
        return np.zeros(0, np.int64), np.zeros(0)
    after, delays = np.full(len(tasks), -1, np.int64), np.zeros(len(tasks))
    last = -1
    for step in dict.fromkeys(tasks.step):
        of_step = np.flatnonzero(steps == step)
        if last >= 0:
            after[of_step] = last
            delays[of_step] = max(0.0, float(tasks.started[of_step[0]] - tasks.ended[last]))
        last = int(of_step[np.argmax(tasks.ended[of_step])])
    return after, delays


def find_rows(record: Tables, tasks: Tasks) -> np.ndarray:
    """Return the row of each task in the table of Dask's; -1 if it has none."""
    rows = record.columns("dask_task")
    pairs = zip(rows["key"], rows["started"], strict=True)
    known = {(str(key), started): row for row, (key, started) in enumerate(pairs)}
    wanted = zip(tasks.label, tasks.started.tolist(), strict=True)
    return np.array([known.get(pair, -1) for pair in wanted], np.int64)


def _read_ready(record: Tables, tasks: Tasks, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return when each task could begin, and which one it waited for (-1 if nobody has told)."""
    rows = record.columns("dask_task")
    moments = np.append(numbers(rows["ready"]), np.nan)[places]
    causes = [*rows["waited_for"], None]
    told = np.full(len(tasks), -1, np.int64)
    # Of several attempts, or graphs with the same keys, the one that began last before it.
    latest: dict[str, int] = {}
    for number, (key, place) in enumerate(zip(tasks.label, places.tolist(), strict=True)):
        told[number] = latest.get(causes[place] or "", -1)
        latest[key] = number
    return np.where(np.isnan(moments), tasks.started, np.minimum(moments, tasks.started)), told


def _count_running(tasks: Tasks, moments: np.ndarray) -> np.ndarray:
    """Return how many tasks are at work at each moment."""
    begun = np.searchsorted(np.sort(tasks.started), moments, side="left")
    ended = np.searchsorted(np.sort(tasks.ended), moments, side="right")
    return np.asarray(begun - ended)
