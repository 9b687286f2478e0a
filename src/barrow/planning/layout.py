"""The ways in which tasks can run at a site, and what each of them costs.

Numbers in, numbers out: no Dask, no files, no clock.
"""

from dataclasses import dataclass, replace
from typing import TypedDict

from barrow.model.cost import Cost
from barrow.model.plan import Engine, Plan
from barrow.model.site import BUDGET_SHARE, WORKER_BYTES, Offer, Site
from barrow.planning.crew import limit_offers, list_shares

# Leave a part of the free memory to the system and to other people.
MEMORY_SHARE = 0.7
# Seconds for one more chunk: a call, an entry in the record, its share of a message.
CHUNK_SECONDS = {"inline": 50e-6, "threads": 100e-6, "processes": 250e-6, "dask": 250e-6}
# Seconds until worker processes are up, and a batch has gone there and back.
START_SECONDS = {"inline": 0.0, "threads": 0.001, "processes": 1.6, "dask": 0.05}
# Share of a task for which half of the workers wait at the end.
UNEVEN = 0.25
# Bringing a block home from another process, and an array to it.
CARRY_SECONDS_PER_BYTE = 0.6e-9


@dataclass(frozen=True)
class Layout:
    """Who runs the tasks, how much memory each may use, and how they disturb each other."""

    engine: Engine
    workers: int
    threads: int
    memory_bytes: int
    """For the whole run."""
    budget_bytes: int
    """For one task."""
    start_seconds: float = 0.0
    chunk_seconds: float = 0.0
    crowding: float = 0.0
    """From 0, when a task has the machine to itself, to 1, when every core has one."""
    tasks_per_core: float = 1.0
    """More than 1 when there are more slots than cores."""
    at_once: int = 0
    """Tasks that run at once, where workers differ; 0 for one in each thread."""
    is_reserve: bool = False
    """Whether it is for work that does not fit otherwise: not all threads have a task."""

    @property
    def slots(self) -> int:
        """Tasks that run at once."""
        return self.at_once or self.workers * self.threads

    def slowdown(self, cost: Cost, items: int) -> float:
        """Return how many times longer a task takes here than on a core of its own."""
        full = cost.slowdown(items, in_threads=self.threads > 1)
        return (1 + (full - 1) * self.crowding) * self.tasks_per_core

    def makespan(self, n_chunks: int, task_seconds: float, carried_bytes: float = 0) -> float:
        """Return how long so many equal tasks take.

        Tasks are never quite equal: at the end some workers wait for others.

        Examples
        --------
        >>> two = Layout("threads", 1, 2, memory_bytes=0, budget_bytes=0)
        >>> two.makespan(3, task_seconds=1.0)
        2.125
        """
        rounds = -(-n_chunks // self.slots) + UNEVEN * (1 - 1 / self.slots)
        carried = carried_bytes * CARRY_SECONDS_PER_BYTE if self.start_seconds > 0.01 else 0.0
        return self.start_seconds + carried + rounds * task_seconds + n_chunks * self.chunk_seconds


def list_layouts(
    site: Site,
    *,
    cost: Cost,
    held_bytes: int,
    memory_bytes: int | None,
    may_be_parallel: bool,
    at_most: int | None = None,
) -> list[Layout]:
    """Return the layouts that are possible at a site, the simplest first.

    Parameters
    ----------
    held_bytes
        Memory taken by a result in memory during the whole run.
    memory_bytes
        What the user allows for the run; None for a share of what is free.
    may_be_parallel
        False when the user asked for plain sequential work.
    at_most
        Tasks that can run at once on this machine; None for as many as it has cores.
    """
    machine = site.machine
    memory = memory_bytes or int(MEMORY_SHARE * machine.available_bytes)
    room = max(1, memory - held_bytes)

    def layout(engine: Engine, workers: int, threads: int, budget: int) -> Layout:
        return make_layout(
            engine,
            workers,
            threads,
            cost=cost,
            site=site,
            memory_bytes=memory,
            budget_bytes=budget,
        )

    inline = layout("inline", 1, 1, room)
    if not may_be_parallel:
        return [inline]
    if site.kind == "dask":
        offers = site.offers
        if memory_bytes is not None and site.is_local:
            offers = limit_offers(offers, room // max(1, site.workers))
        return [
            replace(
                layout("dask", share.workers, share.threads, share.budget_bytes),
                at_once=share.at_once if share.at_once != share.workers * share.threads else 0,
                is_reserve=number > 0,
            )
            for number, share in enumerate(list_shares(offers))
        ]
    cores = min(machine.cores, at_most or machine.cores)
    if cores == 1 or not cost.is_measured:
        return [inline]
    layouts = [inline, layout("threads", 1, cores, room // cores)]
    if room // cores > 2 * WORKER_BYTES:
        budget = task_budget(room // cores, 1)
        layouts.append(layout("processes", cores, 1, budget))
    return layouts


def make_layout(
    engine: Engine,
    workers: int,
    threads: int,
    *,
    cost: Cost,
    site: Site,
    memory_bytes: int,
    budget_bytes: int,
) -> Layout:
    """Return so many workers at a site, with what they cost and how they disturb each other."""
    start = START_SECONDS[engine]
    if engine in ("processes", "dask"):
        start += cost.startup_seconds
    # What is known of tasks disturbing each other was measured on this machine.
    is_here = engine != "dask" or site.is_local
    together = workers * threads if is_here else threads
    return Layout(
        engine,
        workers,
        threads,
        memory_bytes,
        max(1, budget_bytes),
        start,
        CHUNK_SECONDS[engine],
        **measure_crowd(together, site.machine.cores, is_local=is_here),
    )


def slowdown_of(plan: Plan, items: int) -> float:
    """Return how many times longer a task of a plan takes than it would on a core of its own.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> slowdown_of(barrow.plan(np.sqrt, np.ones(8)), items=8)
    1.0
    """
    at_once = 1 if plan.engine == "inline" else min(plan.slots, plan.n_chunks)
    if not plan.is_local:
        at_once = min(at_once, plan.threads)
    crowd = measure_crowd(at_once, plan.cores, is_local=plan.is_local)
    full = plan.cost.slowdown(items, in_threads=plan.threads > 1)
    return (1 + (full - 1) * crowd["crowding"]) * crowd["tasks_per_core"]


class Crowd(TypedDict):
    """How much tasks that run at once disturb each other."""

    crowding: float
    tasks_per_core: float


def measure_crowd(at_once: int, cores: int, *, is_local: bool) -> Crowd:
    """Return how much tasks that run at once disturb each other, as a layout keeps it.

    Examples
    --------
    >>> measure_crowd(3, cores=5, is_local=True), measure_crowd(6, cores=3, is_local=True)
    ({'crowding': 0.5, 'tasks_per_core': 1.0}, {'crowding': 1.0, 'tasks_per_core': 2.0})
    """
    return {
        "crowding": min(1.0, (at_once - 1) / max(1, cores - 1)),
        # How many cores there are elsewhere is not known.
        "tasks_per_core": max(1.0, at_once / cores) if is_local else 1.0,
    }


def task_budget(limit_bytes: int, threads: int) -> int:
    """Return what one task may use on a worker with this limit.

    Examples
    --------
    >>> task_budget(5 * 10**9, threads=1)
    3592713600
    """
    return Offer(threads, limit_bytes).room_bytes // max(1, threads)


def worker_limit(budget_bytes: int, threads: int) -> int:
    """Return the limit of a worker whose tasks may use so much."""
    return int(budget_bytes * threads / BUDGET_SHARE) + WORKER_BYTES
