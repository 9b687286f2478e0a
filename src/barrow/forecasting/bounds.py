"""What a load needs at least of each resource: whatever is scarce in the end stops it scaling."""

from dataclasses import dataclass

import numpy as np

from barrow.simulating.load import Load, Stage

NAMES = {
    "workers": "the workers themselves: more of them would help",
    "cores": "the cores that workers share",
    "disk": "the disk",
    "scheduler": "the scheduler, which every task has to pass",
    "chain": "the longest chain of tasks that wait for one another",
    "longest task": "the longest task, which nobody can help with",
    "tasks": "the number of tasks: there are not more to share out",
    "client": "what the client does alone, before and after the tasks",
    "starting": "the time that workers take to come",
}
"""Resources, in words."""
UNEVEN = 1.2
"""Times the mean: a task that is longer decides by itself."""


@dataclass(frozen=True)
class Bounds:
    """Seconds that a load takes at least because of one resource, by its name."""

    work: float
    """Of all slots together."""
    fixed: dict[str, float]
    """Of what does not grow with the number of workers."""
    client: float

    def scarcest(self, slots: int) -> str:
        """Return what decides how long it takes with so many slots."""
        name = max(self.fixed, key=self.fixed.__getitem__)
        rest = max(self.work / slots, self.fixed[name])
        if self.client > rest:
            return "client"
        return "workers" if self.work / slots >= self.fixed[name] else name

    def last_slots(self) -> float:
        """Return how many slots have something to do before something else decides."""
        return self.work / max(1e-12, *self.fixed.values(), self.client)

    def stopper(self) -> str:
        """Return what decides when there are more than enough slots."""
        found = {**self.fixed, "client": self.client}
        return max(found, key=found.__getitem__)


def find_bounds(load: Load, stage: Stage) -> Bounds:
    """Return what a load needs of each resource, on a stage with any number of workers.

    Examples
    --------
    >>> load = Load(np.full(100, 1.0), scheduler_seconds=0.05)
    >>> bounds = find_bounds(load, Stage())
    >>> bounds.last_slots(), bounds.stopper(), bounds.scarcest(2)
    (20.0, 'scheduler', 'workers')
    """
    count, chain = load.count, longest_chain(load)
    cpu = count * float(np.mean(load.cpu_seconds))
    if stage.cores < np.inf:
        serial = count * load.scheduler_seconds * load.is_one_machine
        cpu = (cpu * load.crowding + serial) / stage.cores
    fixed = {
        "cores": cpu if stage.cores < np.inf else 0.0,
        "disk": count * load.mean_disk_bytes / stage.disk_bytes_per_second,
        "scheduler": count * load.scheduler_seconds,
        _name_chain(load, chain): chain,
        "starting": float(np.median(load.start_seconds)) if len(load.start_seconds) else 0.0,
    }
    return Bounds(count * load.mean_seconds, fixed, load.client_seconds)


def _name_chain(load: Load, seconds: float) -> str:
    if len(load.after):
        return "chain"
    return "longest task" if seconds > UNEVEN * load.mean_seconds else "tasks"


def longest_chain(load: Load) -> float:
    """Return the seconds of the tasks that can only be done one after the other.

    Examples
    --------
    >>> chained = Load(np.ones(3), after=np.array([-1, 0, -1]), delay_seconds=np.zeros(3))
    >>> longest_chain(chained), longest_chain(Load(np.array([1.0, 4.0])))
    (2.0, 4.0)
    """
    seconds = load.cpu_seconds + load.waits + load.gap_seconds
    if not len(load.after):
        return float(seconds.max())
    ends = np.zeros(len(seconds))
    # Nobody waits for a task that began after it.
    for task, (before, delay) in enumerate(zip(load.after, load.delay_seconds, strict=True)):
        ends[task] = (ends[before] if before >= 0 else 0.0) + delay + seconds[task]
    return float(ends.max())
