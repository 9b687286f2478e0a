"""A site: where a run happens and what that place offers."""

from dataclasses import dataclass
from typing import Literal


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
