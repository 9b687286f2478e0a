"""Decide where tasks run, and how much memory each may use.

Numbers in, numbers out: no Dask, no files, no clock.
"""

from dataclasses import dataclass

from barrow.model.cost import Cost
from barrow.model.plan import Engine
from barrow.model.site import Machine, Site
from barrow.units import format_bytes, format_seconds

# Leave a part of the free memory to the system and to other people.
MEMORY_SHARE = 0.7
# Leave a part of a worker's limit to its interpreter and to what is not freed at once.
BUDGET_SHARE = 0.6
# Worth a thread pool, and worth starting worker processes, in seconds of work.
WORTH_THREADS_SECONDS = 0.02
WORTH_PROCESSES_SECONDS = 4.0


@dataclass(frozen=True)
class Layout:
    """Who runs the tasks, and the memory of the run and of one task."""

    engine: Engine
    workers: int
    threads: int
    memory_bytes: int
    budget_bytes: int
    reason: str


def choose_layout(
    site: Site,
    *,
    cost: Cost,
    total_seconds: float,
    held_bytes: int,
    memory_bytes: int | None,
    may_be_parallel: bool,
) -> Layout:
    """Return where the tasks run.

    Parameters
    ----------
    total_seconds
        All tasks one after the other.
    held_bytes
        Memory taken by the result, and by copies of sources, during the whole run.
    memory_bytes
        What the user allows for the run; None for a share of what is free.
    may_be_parallel
        False when the user asked for plain sequential work.
    """
    machine = site.machine
    memory = memory_bytes or int(MEMORY_SHARE * machine.available_bytes)
    room = max(1, memory - held_bytes)
    if not may_be_parallel:
        return Layout("inline", 1, 1, memory, room, "parallel work was ruled out by cluster=False")
    if site.kind == "dask":
        limit = site.limit_bytes or machine.available_bytes // max(1, site.workers)
        if memory_bytes is not None and site.is_local:
            limit = min(limit, room // max(1, site.workers))
        budget = max(1, int(BUDGET_SHARE * limit) // max(1, site.threads))
        reason = f"a Dask cluster is up: workers of {format_bytes(limit)}"
        return Layout("dask", site.workers, site.threads, memory, budget, reason)
    return _on_this_machine(machine, cost, total_seconds, memory, room)


def _on_this_machine(
    machine: Machine, cost: Cost, total_seconds: float, memory: int, room: int
) -> Layout:
    cores = machine.cores
    work = f"{format_seconds(total_seconds)} of work"
    if not cost.is_measured or total_seconds < WORTH_THREADS_SECONDS:
        return Layout("inline", 1, 1, memory, room, "too little work to share")
    if cores == 1:
        return Layout("inline", 1, 1, memory, room, "this machine has one core for us")
    if cost.releases_gil:
        reason = f"{work}, and the function lets threads run side by side"
        return Layout("threads", 1, cores, memory, room // cores, reason)
    if total_seconds < WORTH_PROCESSES_SECONDS:
        reason = f"{work} do not pay for starting workers, and threads would wait for each other"
        return Layout("inline", 1, 1, memory, room, reason)
    reason = f"{work}, and the function holds Python's lock: processes, not threads"
    budget = int(BUDGET_SHARE * room) // cores
    return Layout("processes", cores, 1, memory, max(1, budget), reason)
