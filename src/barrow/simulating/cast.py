"""Who plays: the tasks of one performance of a load, drawn by chance where it leaves a choice."""

from dataclasses import dataclass

import numpy as np

from barrow.simulating.load import Load

LEAST_WAIT = 1e-9
"""Seconds of what came from a cache: with a disk that is told it takes as long as the disk does."""


@dataclass(frozen=True, eq=False)
class Cast:
    """Tasks, what each kind of them takes, and when slots come."""

    kinds: np.ndarray
    waits: np.ndarray
    rates: np.ndarray
    """Bytes per second that a kind would read or write while it waits."""
    cpus: np.ndarray
    first_child: np.ndarray
    """By task: the first of those that can begin when it has ended, or -1; the last entry is of
    those that wait for nobody. Empty if none waits."""
    next_child: np.ndarray
    delays: np.ndarray
    starts: np.ndarray
    """When each slot is there, in order."""


def draw_cast(load: Load, slots: int, rng: np.random.Generator, *, is_as_measured: bool) -> Cast:
    """Return tasks for one performance.

    Parameters
    ----------
    is_as_measured
        Whether each kind comes once and in order, if there are as many tasks.
    """
    cpus, waits = load.cpu_seconds.astype(float), load.waits.astype(float)
    rates = np.zeros(len(cpus))
    if len(load.disk_bytes):
        waits = np.where(load.disk_bytes > 0, np.maximum(waits, LEAST_WAIT), waits)
        rates = load.disk_bytes / np.maximum(waits, LEAST_WAIT)
    kinds = _draw_kinds(load, rng, is_as_measured)
    after, delays = load.after, load.delay_seconds
    if lost := _count_losses(load, rng):
        # It costs half of the task that was in hand, and the time until there is another worker.
        busy = cpus + waits
        cpus = np.append(cpus, 0.5 * float(np.sum(busy**2) / np.sum(busy)))
        waits, rates = np.append(waits, load.restart_seconds), np.append(rates, 0.0)
        places = np.full(lost, len(kinds)) if len(after) else rng.integers(0, len(kinds) + 1, lost)
        kinds = np.insert(kinds, np.sort(places), len(cpus) - 1)
        if len(after):
            after, delays = np.append(after, [-1] * lost), np.append(delays, [0.0] * lost)
    starts = np.zeros(slots)
    if len(load.start_seconds):
        starts = np.sort(rng.choice(load.start_seconds, slots))
    return Cast(kinds, waits, rates, cpus, *_list_children(after), delays, starts)


def _draw_kinds(load: Load, rng: np.random.Generator, is_as_measured: bool) -> np.ndarray:
    if load.is_drawn:
        return rng.integers(0, len(load.cpu_seconds), load.count, dtype=np.int64)
    kinds = np.arange(load.count, dtype=np.int64)
    if is_as_measured:
        return kinds
    if not len(load.steps):
        return rng.integers(0, load.count, load.count, dtype=np.int64)
    for step in np.unique(load.steps):
        of_step = np.flatnonzero(load.steps == step)
        kinds[of_step] = rng.choice(of_step, len(of_step))
    return kinds


def _count_losses(load: Load, rng: np.random.Generator) -> int:
    expected = load.losses_per_second * load.count * load.mean_seconds
    return int(rng.poisson(expected)) if expected else 0


def _list_children(after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the tasks that follow each task, as linked lists in order.

    Examples
    --------
    >>> first, following = _list_children(np.array([-1, 0, 0]))
    >>> first.tolist(), following.tolist()
    ([1, -1, -1, 0], [-1, 2, -1])
    """
    nobody = np.zeros(0, np.int64)
    if not len(after):
        return nobody, nobody
    count = len(after)
    first = np.full(count + 1, -1, np.int64)
    following = np.full(count, -1, np.int64)
    parents = np.where(after < 0, count, after)
    # Within a family in order: the one before, if it has the same parent.
    order = np.lexsort((np.arange(count), parents))
    is_first = np.append(True, np.diff(parents[order]) != 0)
    first[parents[order][is_first]] = order[is_first]
    following[order[:-1][~is_first[1:]]] = order[1:][~is_first[1:]]
    return first, following
