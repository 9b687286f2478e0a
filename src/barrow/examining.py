"""Examine an installation and a site before any run: what would go wrong later, said now."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from barrow.errors import BarrowError
from barrow.places import cache_folder
from barrow.sites.machine import read_machine
from barrow.units import format_bytes, format_count

LITTLE_MEMORY, LITTLE_DISK = 2 * 2**30, 5 * 2**30
FEWEST_FILES = 1024
ANSWER_SECONDS = 10.0
NETWORK_DISKS = ("nfs", "lustre", "beegfs", "gpfs", "cifs", "smb", "ceph", "fuse.sshfs", "afs")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Literal["good", "beware", "bad"]
    text: str
    """What was found and, unless it is good, what to do."""


def examine() -> list[Check]:
    """Look at everything a run depends on.

    Examples
    --------
    >>> [check.name for check in examine()][:3]
    ['versions', 'cores', 'memory']
    """
    found = []
    for name, look in _LOOKS.items():
        try:
            found += [Check(name, *answer) for answer in look()]  # type: ignore[arg-type]
        except (OSError, BarrowError, ValueError) as error:
            found.append(Check(name, "beware", f"could not be looked at: {error}"))
    return found


Answer = tuple[str, str]


def _look_at_versions() -> Iterator[Answer]:
    from packaging.requirements import Requirement

    wrong, right = [], 0
    for line in requires("barrow") or ():
        needed = Requirement(line)
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        try:
            there = version(needed.name)
        except PackageNotFoundError:
            wrong.append(f"{needed.name} is missing")
            continue
        right += 1
        if not needed.specifier.contains(there, prereleases=True):
            wrong.append(f"{needed.name} {there} is there, {needed.specifier} is needed")
    if wrong:
        yield "bad", f"{'; '.join(wrong)}. Install barrow again: pip install --upgrade barrow"
    else:
        yield "good", f"{format_count(right, 'package')} as needed"


def _look_at_cores() -> Iterator[Answer]:
    machine = read_machine()
    there = os.cpu_count() or machine.cores
    less = f" of {there}: a limit leaves no more to this process" if machine.cores < there else ""
    yield "good", f"{format_count(machine.cores, 'core')}{less}"


def _look_at_memory() -> Iterator[Answer]:
    free = read_machine().available_bytes
    if free < LITTLE_MEMORY:
        yield "beware", f"only {format_bytes(free)} are free. Close other programs, or use memory=."
    else:
        yield "good", f"{format_bytes(free)} free"


def _look_at_limits() -> Iterator[Answer]:
    import resource

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= files < FEWEST_FILES:
        yield "beware", f"a process may open {files} files. Many workers need more: ulimit -n 4096"
    else:
        yield "good", f"a process may open {files} files"


def _look_at_scratch() -> Iterator[Answer]:
    place = Path(tempfile.gettempdir())
    free = shutil.disk_usage(place).free
    kind = find_disk_kind(place)
    if kind.startswith(NETWORK_DISKS):
        yield "beware", f"{place} is on a network disk ({kind}). Set TMPDIR to a local one."
    elif free < LITTLE_DISK:
        yield "beware", f"{place} has {format_bytes(free)} left. Set TMPDIR to a larger disk."
    elif kind == "tmpfs":
        yield "beware", f"{place} lies in memory. What is written there is missing elsewhere."
    else:
        yield "good", f"{place}, {format_bytes(free)} free"


def _look_at_cache() -> Iterator[Answer]:
    place = cache_folder()
    while not place.exists():
        place = place.parent
    if os.access(place, os.W_OK):
        yield "good", str(cache_folder())
    else:
        yield "beware", f"{place} cannot be written. Set BARROW_CACHE to a folder that can."


def _look_at_threads() -> Iterator[Answer]:
    given = {name: os.environ[name] for name in THREADS if os.environ.get(name, "1") != "1"}
    if given:
        names = ", ".join(f"{name}={value}" for name, value in given.items())
        yield "beware", f"{names}. Dask leaves that to its workers: too many threads. unset them."
    else:
        yield "good", "numerical libraries get as many as barrow gives them"


def _look_at_encryption() -> Iterator[Answer]:
    from barrow.sites.security import make_credentials, make_security

    make_security(make_credentials())
    yield "good", "certificates can be made"


def _look_at_slurm() -> Iterator[Answer]:
    if shutil.which("sbatch") is None:
        yield "good", "not here: runs stay on this machine"
        return
    try:
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%P"],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield "beware", f"does not answer: {error}. Jobs cannot be started from here."
        return
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0]
        yield "beware", f"does not answer ({said}). Jobs cannot be started from here."
    else:
        yield "good", f"partitions {', '.join(done.stdout.split())}"


def find_disk_kind(place: Path) -> str:
    """Return the kind of file system of a folder: ``ext4``, ``nfs4``; empty if nobody knows."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    real = place.resolve()
    best = ("", "")
    for line in lines:
        _, point, kind, *_ = line.split(" ")
        if real.is_relative_to(point) and len(point) >= len(best[0]):
            best = point, kind
    return best[1]


_LOOKS: dict[str, Callable[[], Iterator[Answer]]] = {
    "versions": _look_at_versions,
    "cores": _look_at_cores,
    "memory": _look_at_memory,
    "limits": _look_at_limits,
    "scratch": _look_at_scratch,
    "cache": _look_at_cache,
    "threads": _look_at_threads,
    "encryption": _look_at_encryption,
    "SLURM": _look_at_slurm,
}
