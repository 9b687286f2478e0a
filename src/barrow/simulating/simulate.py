"""Play a load through on a stage: how long it takes, again and again with other chances."""

from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from types import FunctionType
from typing import Any

import numpy as np

from barrow.simulating import events
from barrow.simulating.cast import Cast, draw_cast
from barrow.simulating.load import Load, Stage

REPEATS = 9
LARGE_TASKS = 2_000_000
"""What so many tasks take hardly depends on chance: they are played through once."""
MANY_TASKS = 300_000
"""In all repeats: from here on it is worth loading Numba, or else putting tasks together."""
UNITS_PER_SLOT = 40
"""Where tasks are put together, so many units at least for each slot."""
SIGMAS = 1.64
"""9 of 10 lie between so many standard errors on either side."""


@dataclass(frozen=True)
class Taken:
    """How long a load takes on a stage."""

    seconds: float
    low_seconds: float
    """With ``high_seconds``: 9 of 10 times it should lie between them."""
    high_seconds: float


def simulate(load: Load, stage: Stage, *, seed: int = 0, repeats: int | None = None) -> Taken:
    """Return how long a load takes on a stage; the same seed gives the same answer.

    Parameters
    ----------
    repeats
        How often it is played through. If there is one task of each kind, the first time they
        come as they were measured; the other times they are drawn, which says how far chance
        may move the answer.

    Examples
    --------
    >>> simulate(Load(np.full(10, 2.0)), Stage(workers=5)).seconds
    4.0
    """
    turns = repeats or (1 if load.count > LARGE_TASKS else REPEATS)
    is_compiled = False
    if load.count * turns > MANY_TASKS:
        is_compiled = has_numba()
        if not is_compiled:
            load = put_together(load, max(MANY_TASKS // turns, UNITS_PER_SLOT * stage.slots))
    found = []
    for turn in range(turns):
        rng = np.random.default_rng([seed, turn])
        slots = min(stage.slots, load.count)
        cast = draw_cast(load, slots, rng, is_as_measured=turn == 0)
        found.append(load.client_seconds + _play(cast, load, stage, is_compiled))
    middle = float(np.median(found)) if load.is_drawn else found[0]
    low, high = (float(value) for value in np.quantile(found, [0.05, 0.95]))
    slack = _doubt(load) * max(0.0, middle - load.client_seconds)
    return Taken(middle, max(0.0, min(middle, low) - slack), max(middle, high) + slack)


def has_numba() -> bool:
    """Tell whether Numba is there, without importing it."""
    return find_spec("numba") is not None


def put_together(load: Load, most: int) -> Load:
    """Return a load of at most so many units, each of several tasks that follow one another.

    Examples
    --------
    >>> fewer = put_together(Load(np.ones(4), tasks=1000, gap_seconds=0.1), most=100)
    >>> fewer.count, float(fewer.cpu_seconds[0]), fewer.gap_seconds
    (100, 10.0, 1.0)
    """
    if load.count <= most or len(load.after):
        return load
    size = load.count / most
    return replace(
        load,
        cpu_seconds=load.cpu_seconds * size,
        wait_seconds=load.wait_seconds * size,
        disk_bytes=load.disk_bytes * size,
        steps=load.steps[:0],
        tasks=most,
        gap_seconds=load.gap_seconds * size,
        scheduler_seconds=load.scheduler_seconds * size,
    )


def _play(cast: Cast, load: Load, stage: Stage, is_compiled: bool) -> float:
    """Return the seconds from the moment at which a task could begin to the end of the last."""
    count, slots = len(cast.kinds), len(cast.starts)
    room = slots + 2 + (count if len(cast.first_child) else 0)
    keys, ids = np.zeros((3, room)), np.zeros((3, room), np.int64)
    # What is sorted is a heap.
    keys[events.CLOCK, :slots], ids[events.CLOCK, :slots] = cast.starts, 2 * count + 1
    sizes, queue = np.array([slots, 0, 0]), np.zeros(count, np.int64)
    arrays: Any = (cast.kinds, cast.waits, cast.rates, cast.cpus)
    arrays += (cast.first_child, cast.next_child, cast.delays)
    rooms: Any = (keys.ravel(), ids.ravel(), sizes, queue)
    if not is_compiled:
        # Lists are several times quicker than arrays where every step is one of Python's.
        arrays, rooms = ([array.tolist() for array in given] for given in (arrays, rooms))
    # However many workers there are, half of the cores is left for tasks.
    cores = max(stage.cores / 2, stage.cores - load.idle_share * stage.workers)
    # Cores of which there are enough for everybody, scheduler included, are not shared.
    is_tight = cores < slots + 1 or load.crowding > 1
    # Numbers are of one type each time: for another one it would be compiled again.
    play: Any = _compile() if is_compiled else events.play
    seconds = play(
        *arrays,
        float(load.gap_seconds),
        slots,
        float(load.scheduler_seconds),
        bool(load.is_one_machine),
        float(min(events.FAR, cores)) if is_tight else events.FAR,
        float(load.crowding),
        float(load.turning_share),
        float(min(events.FAR, stage.disk_bytes_per_second)),
        *rooms,
    )
    return float(seconds)


@cache
def _compile() -> Any:
    """Return the loop over all events, compiled; what was compiled once is kept on disk."""
    import numba

    def compiled(function: Any) -> Any:
        try:
            return numba.njit(cache=True)(function)
        except RuntimeError:  # there is no place where it could be kept
            return numba.njit(function)

    parts = {part.__name__: compiled(part) for part in (events.push, events.pop, events.pace_cores)}
    # The loop finds its parts by their names: a copy of it finds the compiled ones.
    loop = FunctionType(events.play.__code__, {**vars(events), **parts}, "play")
    return compiled(loop)


def _doubt(load: Load) -> float:
    """Return how far the mean of what was measured may be from the truth, as a share.

    Examples
    --------
    >>> _doubt(Load(np.array([1.0, 1.0])))
    0.0
    """
    work = load.cpu_seconds + load.waits
    mean = float(np.mean(work))
    return SIGMAS * float(np.std(work)) / len(work) ** 0.5 / mean if mean else 0.0
