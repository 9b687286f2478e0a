"""Read what this process may really use of its machine.

The number of cores and the size of the memory that a machine has say little:
affinity, control groups, SLURM and resource limits each allow less. All of them
are read, and the least counts. Nothing is started and nothing is changed.
"""

import os
import platform
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from barrow.model.site import Machine
from barrow.sites.cgroup import Bounds, read_bounds

MEBIBYTE = 2**20


def read_machine(root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> Machine:
    """Return the cores and the memory that this process may use.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` are found.
    environ
        Environment in which SLURM tells what the job was given.

    Examples
    --------
    >>> machine = read_machine()
    >>> machine.cores >= 1 and machine.available_bytes <= machine.total_bytes
    True
    """
    bounds = read_bounds(root)
    memory = _read_memory(root)
    total_bytes, available_bytes = limit_memory(
        *memory,
        bounds=bounds,
        ceilings=(*parse_slurm_memory(environ), *_read_resource_limits()),
    )
    return Machine(
        host=os.uname().nodename,
        cores=count_cores(_count_usable_cores(), (*bounds.cores, *parse_slurm_cores(environ))),
        total_bytes=total_bytes,
        available_bytes=available_bytes,
        processor=_read_processor(root),
    )


def count_cores(usable: int, limits: Iterable[float]) -> int:
    """Return the whole cores left by all limits, at least one.

    Examples
    --------
    >>> count_cores(16, [8, 2.5]), count_cores(16, [0.5]), count_cores(16, [])
    (2, 1, 16)
    """
    return max(1, int(min([usable, *limits])))


def limit_memory(
    total_bytes: int, available_bytes: int, *, bounds: Bounds, ceilings: Iterable[int]
) -> tuple[int, int]:
    """Return total and available memory after every limit.

    Parameters
    ----------
    total_bytes, available_bytes
        What the machine has, and what is free of it.
    bounds
        Control groups: what others in the same group hold is taken off.
    ceilings
        Limits of which the present use is not known.

    Examples
    --------
    >>> from barrow.sites.cgroup import MemoryBound
    >>> bounds = Bounds(memory=(MemoryBound(limit_bytes=1000, used_bytes=300),))
    >>> limit_memory(8000, 5000, bounds=bounds, ceilings=[])
    (1000, 700)
    """
    ceilings = list(ceilings)
    total = min([total_bytes, *(b.limit_bytes for b in bounds.memory), *ceilings])
    free = (max(0, bound.limit_bytes - bound.used_bytes) for bound in bounds.memory)
    return total, min([available_bytes, total, *free])


def parse_meminfo(text: str) -> tuple[int, int]:
    """Return total and available bytes from the text of ``/proc/meminfo``.

    Examples
    --------
    >>> parse_meminfo("MemTotal: 100 kB\\nMemFree: 10 kB\\nMemAvailable: 60 kB")
    (102400, 61440)
    """
    values = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        fields = rest.split()
        if fields and fields[0].isdigit():
            values[name] = int(fields[0]) * 1024
    if "MemTotal" not in values:
        raise ValueError("There is no line 'MemTotal'.")
    # Kernels before 3.14 do not say what is available.
    free = values.get("MemFree", 0) + values.get("Cached", 0)
    return values["MemTotal"], values.get("MemAvailable", free)


def parse_slurm_cores(environ: Mapping[str, str]) -> list[int]:
    """Return the cores SLURM gave to this task, if this is a SLURM job.

    Examples
    --------
    >>> parse_slurm_cores({"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "4"})
    [4]
    >>> parse_slurm_cores({"SLURM_CPUS_PER_TASK": "4"})
    []
    """
    if "SLURM_JOB_ID" not in environ:
        return []
    names = ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE")
    given = [int(environ[name]) for name in names if environ.get(name, "").isdigit()]
    return [cores for cores in given[:1] if cores]


def parse_slurm_memory(environ: Mapping[str, str]) -> list[int]:
    """Return the bytes SLURM gave to this task, if this is a SLURM job and it says so.

    SLURM counts in mebibytes; zero stands for all the memory of the node.

    Examples
    --------
    >>> parse_slurm_memory({"SLURM_JOB_ID": "7", "SLURM_MEM_PER_NODE": "2048"})
    [2147483648]
    """
    if "SLURM_JOB_ID" not in environ:
        return []
    per_node = environ.get("SLURM_MEM_PER_NODE", "")
    per_core = environ.get("SLURM_MEM_PER_CPU", "")
    if per_node.isdigit() and int(per_node):
        return [int(per_node) * MEBIBYTE]
    if per_core.isdigit():
        return [int(per_core) * cores * MEBIBYTE for cores in parse_slurm_cores(environ)]
    return []


def _count_usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read_processor(root: Path) -> str:
    try:
        with (root / "proc/cpuinfo").open() as file:
            # On a machine with many cores the whole file takes a while.
            for line in islice(file, 40):
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def _read_memory(root: Path) -> tuple[int, int]:
    try:
        return parse_meminfo((root / "proc/meminfo").read_text())
    except (OSError, ValueError):
        # Not Linux, or a sandbox that hides it.
        import psutil

        memory = psutil.virtual_memory()
        return memory.total, memory.available


def _read_resource_limits() -> list[int]:
    if sys.platform == "win32":
        return []
    import resource

    softs = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return [soft for soft in softs if soft != resource.RLIM_INFINITY]
