"""A load: what has to be done, and what each part of it costs; all that a simulation needs."""

from dataclasses import dataclass, field

import numpy as np


def _nothing() -> np.ndarray:
    return np.zeros(0)


def _nobody() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Load:
    """Tasks by their kinds, and what lies around them.

    A kind is a task that was measured. There may be as many tasks as kinds, then each is done
    once, in order; or any other number, then their kinds are drawn.
    """

    cpu_seconds: np.ndarray
    """Of each kind: on a core."""
    wait_seconds: np.ndarray = field(default_factory=_nothing)
    """Of each kind: waiting for the disk, or for others; no core is used. Empty for none."""
    disk_bytes: np.ndarray = field(default_factory=_nothing)
    """Of each kind: read and written."""
    peak_bytes: np.ndarray = field(default_factory=_nothing)
    """Of each kind: above what its worker holds anyway."""
    steps: np.ndarray = field(default_factory=_nobody)
    """Of each kind: the number of its step; tasks are drawn from those of the same. Empty for
    one."""
    tasks: int = 0
    """How many there are; 0 for one of each kind."""
    after: np.ndarray = field(default_factory=_nobody)
    """The task after whose end each can begin; -1 for those that can at once. Empty if all can."""
    delay_seconds: np.ndarray = field(default_factory=_nothing)
    """How long after that, or after the beginning."""
    gap_seconds: float = 0.0
    """Of a slot between two tasks."""
    scheduler_seconds: float = 0.0
    """For each task, in one process that does one thing after the other."""
    client_seconds: float = 0.0
    """Before the first task and after the last one; however many workers there are."""
    start_seconds: np.ndarray = field(default_factory=_nothing)
    """How long workers took to come, in a queue or by themselves; empty if they were there."""
    losses_per_second: float = 0.0
    """Workers that are lost, for each second of a worker."""
    restart_seconds: float = 0.0
    """Until a lost one is replaced."""
    crowding: float = 1.0
    """How many times longer a task takes on its core when every core has one."""
    turning_share: float = 0.0
    """Of a core: lost while more want one than there are, and take turns."""
    idle_share: float = 0.0
    """Of a core: what each worker uses as long as it is there."""
    worker_bytes: int = 0
    """What a worker holds beside its tasks."""
    client_bytes: int = 0
    is_one_machine: bool = True
    """Whether client and scheduler run on the cores of the workers."""

    @property
    def count(self) -> int:
        """How many tasks there are."""
        return self.tasks or len(self.cpu_seconds)

    @property
    def is_drawn(self) -> bool:
        """Whether tasks are drawn from the kinds."""
        return self.count != len(self.cpu_seconds)

    @property
    def waits(self) -> np.ndarray:
        """Seconds of waiting of each kind."""
        return self.wait_seconds if len(self.wait_seconds) else np.zeros(len(self.cpu_seconds))

    @property
    def mean_seconds(self) -> float:
        """Of a task in its slot, on a core of its own, with the gap before it."""
        return float(np.mean(self.cpu_seconds) + np.mean(self.waits)) + self.gap_seconds

    @property
    def mean_disk_bytes(self) -> float:
        """Of a task."""
        return float(np.mean(self.disk_bytes)) if len(self.disk_bytes) else 0.0

    @property
    def task_bytes(self) -> float:
        """Of the largest task; 0 if nobody knows."""
        return float(np.max(self.peak_bytes)) if len(self.peak_bytes) else 0.0


@dataclass(frozen=True)
class Stage:
    """Where a load is played through: workers and what they share."""

    workers: int = 1
    threads: int = 1
    """Tasks at once in each worker."""
    cores: float = np.inf
    """Of all workers together; infinite if each thread has one."""
    disk_bytes_per_second: float = np.inf
    """What all workers get together."""

    @property
    def slots(self) -> int:
        """Tasks at once."""
        return self.workers * self.threads
