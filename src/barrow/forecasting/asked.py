"""What is to be different: workers, memory, chunks, disk, cores; checked once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.forecasting.measured import Measured
from barrow.model.grid import Grid
from barrow.model.plan import Plan
from barrow.model.site import Offer
from barrow.simulating.load import Load, Stage
from barrow.units import format_bytes, parse_bytes

GB = 1e9


@dataclass(frozen=True)
class Asked:
    """What is to be different from what was measured."""

    memory_bytes: int | None = None
    chunk: Mapping[str, int] | None = None
    disk_gbps: float | None = None
    cores: int | None = None
    threads: int | None = None
    queue_seconds: float | None = None
    losses_per_hour: float | None = None
    times: float = 1.0

    @classmethod
    def of(cls, memory: Any = None, **given: Any) -> "Asked":
        """Return what a user asked for, or say what is wrong with it."""
        for name, value in given.items():
            if name == "chunk" or value is None:
                continue
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            is_zero_allowed = name in ("queue_seconds", "losses_per_hour")
            if not is_number or not (value > 0 or (value == 0 and is_zero_allowed)):
                raise InputError(f"{name}={value!r} cannot be used: give a positive number.")
        try:
            memory_bytes = None if memory is None else parse_bytes(memory)
        except ValueError as error:
            raise InputError(f"memory={memory!r} cannot be used: {error}") from None
        return cls(memory_bytes, **given)

    def stage(self, measured: Measured, workers: int) -> Stage:
        """Return the stage with so many workers."""
        threads = self.threads or measured.stage.threads
        disk = np.inf if self.disk_gbps is None else self.disk_gbps * GB
        return Stage(workers, threads, float(self.cores or np.inf), disk)

    def load(self, measured: Measured) -> Load:
        """Return the load with what is different about the work itself."""
        load = measured.load
        if self.chunk is not None:
            load = rechunk(load, measured.plan, self.chunk)
        if self.queue_seconds is not None:
            waits = [self.queue_seconds] if self.queue_seconds else []
            load = replace(load, start_seconds=np.array(waits, float))
        if self.losses_per_hour is not None:
            load = replace(load, losses_per_second=self.losses_per_hour / 3600)
        if self.times != 1:
            if len(load.after):
                raise InputError(
                    f"times={self.times:g} needs tasks that wait for nobody: those of "
                    f"'{measured.name}' wait for one another."
                )
            load = replace(load, tasks=max(1, round(self.times * load.count)))
        return load

    def at_once(self, load: Load, threads: int) -> int:
        """Return how many tasks fit into a worker at once; 0 if none does."""
        if self.memory_bytes is None or not load.task_bytes:
            return threads
        room = Offer(threads, self.memory_bytes).whole_bytes
        return min(threads, int(room // load.task_bytes))


def rechunk(load: Load, plan: Plan | None, chunk: Mapping[str, int]) -> Load:
    """Return the load of the same data in other chunks; what they take follows from the cost."""
    if plan is None or plan.before:
        raise InputError(
            "chunk= can be foreseen for runs of barrow's own with one stage only: another "
            "program has to be run with other chunks."
        )
    for dim in chunk:
        if dim not in plan.cuttable:
            raise InputError(
                f"chunk={dict(chunk)!r}: '{dim}' cannot be cut. '{plan.name}' can be cut along "
                f"{', '.join(map(repr, plan.cuttable)) or 'nothing'}."
            )
    grid = Grid(plan.lengths, {**plan.chunks, **chunk})
    size = prod(grid.chunk.values()) / prod(plan.grid.chunk.values())
    items = plan.items * size
    cost = plan.cost
    longer, more = size, size
    if cost.is_measured:
        longer = cost.seconds(items) / max(1e-12, cost.seconds(plan.items))
    if cost.peak_bytes(plan.items) > 0:
        more = cost.peak_bytes(items) / cost.peak_bytes(plan.items)
    # A call may have done several chunks: there are as many more calls as there are chunks.
    count = max(1, round(load.count * len(grid) / max(1, plan.n_chunks)))
    return replace(
        load,
        cpu_seconds=load.cpu_seconds * longer,
        wait_seconds=load.wait_seconds * size,
        disk_bytes=load.disk_bytes * size,
        peak_bytes=load.peak_bytes * more,
        tasks=count,
    )


def explain_misfit(asked: Asked, load: Load) -> str:
    """Return why no task fits a worker."""
    assert asked.memory_bytes is not None
    return (
        f"A task needs {format_bytes(load.task_bytes)}, and a worker of "
        f"{format_bytes(asked.memory_bytes)} has not so much for it: give workers more memory, or "
        "smaller chunks with chunk=."
    )
