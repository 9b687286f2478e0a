"""A site: where a run happens and what that place offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MEMORY = "barrow-memory"
"""Name of the Dask resource that workers offer and tasks ask for."""
UNIT_BYTES = 2**20
"""Of that resource. Whole numbers: sums of fractions would drift until nothing fits any more."""

THREADS = "threads"
"""Name of the resource that every worker offers: as much as it has threads."""

JOB_TOPIC = "barrow-job"
"""Under which a scheduler is told what becomes of jobs of a queue that hold its workers."""

# A worker's limit covers its interpreter with its libraries, and what is not freed at once.
WORKER_BYTES = 200 * 2**20
BUDGET_SHARE = 0.75
# From here on Dask starts no further task in a worker; a little later it kills the process.
PAUSE_SHARE = 0.8
# What one task may use that has a worker for itself: then there is nobody to be held up.
WHOLE_SHARE = 0.9


@dataclass(frozen=True)
class Machine:
    """What this process may really use of the machine it runs on."""

    host: str
    cores: int
    """Cores this process may run on: affinity, cgroup and SLURM limits respected."""
    total_bytes: int
    """Memory of the machine, or of the cgroup or job if that is less."""
    available_bytes: int
    """Memory that is free now, within that total."""
    processor: str = ""
    """What the processor calls itself."""


@dataclass(frozen=True)
class Offer:
    """What one worker offers.

    Examples
    --------
    >>> small = Offer(threads=4, limit_bytes=10**9)
    >>> small.room_bytes, small.whole_bytes
    (592713600, 690284800)

    What others keep there is not to be had.

    >>> Offer(threads=4, limit_bytes=10**9, held_bytes=5 * 10**8).room_bytes
    300000000
    """

    threads: int
    limit_bytes: int
    held_bytes: int = 0
    """What it held before the run, its interpreter included."""
    resources: Mapping[str, float] = field(default_factory=dict)

    def amount(self, resource: str) -> float:
        """Return how much it offers of a resource.

        Examples
        --------
        >>> offer = Offer(threads=4, limit_bytes=10**9, resources={"GPU": 1})
        >>> offer.amount("GPU"), offer.amount("threads"), offer.amount("licence")
        (1, 4, 0)
        """
        return self.threads if resource == THREADS else self.resources.get(resource, 0)

    @property
    def room_bytes(self) -> int:
        """What all of its tasks may use together."""
        limit = self.limit_bytes
        usual = int(BUDGET_SHARE * max(limit - WORKER_BYTES, limit // 4))
        free = int(PAUSE_SHARE * limit) - self.held_bytes
        return max(min(usual, free), int(BUDGET_SHARE * (limit // 4)))

    @property
    def whole_bytes(self) -> int:
        """What a task may use that runs there with no other."""
        free = int(WHOLE_SHARE * self.limit_bytes) - max(WORKER_BYTES, self.held_bytes)
        return max(self.room_bytes, free)

    @property
    def units(self) -> int:
        """What it offers of the resource: never less than its tasks were planned with."""
        return -(-self.whole_bytes // UNIT_BYTES)


def count_units(n_bytes: int) -> int:
    """Return what a task of so many bytes asks for of the resource.

    Examples
    --------
    >>> count_units(3 * 2**20 + 5), count_units(10)
    (3, 1)
    """
    return max(1, n_bytes // UNIT_BYTES)


@dataclass(frozen=True)
class Site:
    """Where a run happens: this process, or the workers of a Dask cluster."""

    kind: Literal["process", "dask"]
    machine: Machine
    """The machine of the client."""
    workers: int = 0
    threads: int = 1
    """Threads of each worker."""
    limit_bytes: int = 0
    """Memory one worker may hold."""
    is_local: bool = True
    """Whether all workers run on the client's machine and can share its memory."""
    address: str = ""
    is_own: bool = False
    """Whether the workers were started by barrow, on this machine."""
    crew: Mapping[str, Offer] = field(default_factory=dict)
    """What each worker offers, by its address, where they differ; empty if all are alike."""

    @property
    def offers(self) -> list[Offer]:
        """What each worker offers; one without a limit has its share of what is free."""
        if self.crew:
            return list(self.crew.values())
        limit = self.limit_bytes or self.machine.available_bytes // max(1, self.workers)
        return [Offer(self.threads, limit)] * self.workers
