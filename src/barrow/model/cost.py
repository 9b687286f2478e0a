"""A cost: what probing found out about a step."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from barrow.model.curve import Points, level_at, seconds_at

MEMORY_MARGIN = 0.05
"""Least share by which a peak may lie above its prediction."""
MEMORY_SLACK_BYTES = 2**20
"""Least bytes by which it may: pages, small buffers, what an allocator keeps."""


@dataclass(frozen=True)
class Cost:
    """Seconds and peak memory of one task, as functions of the items it reads.

    Items are elements of all inputs of a chunk, halo included. The peak is what
    the task holds at most, its inputs and its answer included. Time does not
    grow in proportion (caches, allocation), so it is kept as measured points.

    Examples
    --------
    >>> cost = Cost(points=((1000, 0.001), (100_000, 0.05)), peak_per_item=16.0)
    >>> cost.seconds(1000), cost.seconds(200_000)
    (0.001, 0.1)
    >>> cost.peak_bytes(1000), round(cost.peak_bound(1000))
    (16000.0, 1065376)
    """

    points: Points = ()
    """Items and seconds of tasks that had a core to themselves: the function alone,
    without reading and writing."""
    spread: float = 0.0
    """Relative scatter of the time over different places of the data."""
    thread_slowdown: Points = ()
    """Items, and how many times longer a task takes when each core has one, in threads
    of one process: 1 when they do not notice each other."""
    process_slowdown: Points = ()
    """The same in a process on each core."""
    core_slowdown: Points = ()
    """Items, and how many times longer a task uses a core when every core has a task: caches
    and memory are shared. Waiting for one another is not part of it."""
    read_seconds_per_byte: float = 0.0
    """Of whole storage chunks, decoding included."""
    write_seconds_per_byte: float = 0.0
    """Of the answer, to where the result goes, encoding included."""
    write_seconds_per_chunk: float = 0.0
    """The same for any answer, however small: a file has to be made."""
    peak_base_bytes: float = 0.0
    peak_per_item: float = 0.0
    peak_margin: float = MEMORY_MARGIN
    """Share by which the upper bound of the peak lies above its prediction."""
    peak_slack_bytes: float = MEMORY_SLACK_BYTES
    """Bytes by which it does on top of that, however small the task."""
    startup_seconds: float = 0.0
    """What the first call in a new process costs on top: imports, compilation, caches."""
    probing_seconds: float = 0.0
    """What it took to find all this out; 0 when it was remembered."""

    @property
    def is_measured(self) -> bool:
        """Whether time was measured; it is not worth it for tiny data."""
        return bool(self.points)

    def seconds(self, items: float) -> float:
        """Return the predicted time of the function on so many items, on a core of its own."""
        return seconds_at(self.points, items)

    def slowdown(self, items: float, *, in_threads: bool) -> float:
        """Return how many times longer a task takes when every core has one."""
        return level_at(self.thread_slowdown if in_threads else self.process_slowdown, items)

    def crowding(self, items: float, *, in_threads: bool) -> float:
        """Return how many times longer a task keeps its core when every core has one.

        Threads keep it while they wait for Python's lock.

        Examples
        --------
        >>> cost = Cost(thread_slowdown=((1, 2.0),), core_slowdown=((1, 1.1),))
        >>> cost.crowding(10, in_threads=True), cost.crowding(10, in_threads=False)
        (2.0, 1.1)
        """
        if in_threads or not self.core_slowdown:
            return max(1.0, self.slowdown(items, in_threads=in_threads))
        return level_at(self.core_slowdown, items)

    def peak_bytes(self, items: float) -> float:
        """Return the predicted peak memory of one task."""
        return self.peak_base_bytes + self.peak_per_item * items

    def peak_bound(self, items: float) -> float:
        """Return what the peak should never exceed."""
        return self.peak_bytes(items) * (1 + self.peak_margin) + self.peak_slack_bytes

    def items_within(self, budget_bytes: float) -> int:
        """Return how many items a task may read so that the bound of its peak fits a budget."""
        if self.peak_per_item <= 0:
            return 2**62
        room = (budget_bytes - self.peak_slack_bytes) / (1 + self.peak_margin)
        return max(0, int((room - self.peak_base_bytes) / self.peak_per_item))

    def to_dict(self) -> dict[str, Any]:
        """Return the cost as plain data.

        Examples
        --------
        >>> cost = Cost(points=((10, 0.5),))
        >>> Cost.from_dict(cost.to_dict()) == cost
        True
        """
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Cost":
        """Return a cost that was saved as plain data."""
        made = dict(saved)
        for name in ("points", "thread_slowdown", "process_slowdown", "core_slowdown"):
            made[name] = tuple((int(items), float(value)) for items, value in saved.get(name, ()))
        return cls(**made)
