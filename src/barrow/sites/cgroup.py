"""Read what a Linux control group allows, of the process's own group and all above it.

A limit holds for everybody below it, so the tightest one on the way up counts.
Version 1 has one tree for each controller, version 2 one for all; a hybrid
machine has both, and each is followed where it is mounted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Mount:
    """Where a tree of control groups can be seen."""

    point: str
    root: str
    """The group that appears at the mount point; below the true root in a container."""
    version: int
    controllers: tuple[str, ...]
    """Those of interest in version 1; version 2 has the single name ``""``."""


@dataclass(frozen=True)
class MemoryBound:
    """What one control group allows, and what is taken of it."""

    limit_bytes: int
    used_bytes: int


@dataclass(frozen=True)
class Bounds:
    """All limits between this process and the root of the machine."""

    memory: tuple[MemoryBound, ...] = ()
    cores: tuple[float, ...] = ()


def read_bounds(root: Path = Path("/")) -> Bounds:
    """Return the limits of this process's own control groups and their ancestors."""
    membership = parse_membership(_read(root / "proc/self/cgroup"))
    memory: list[MemoryBound] = []
    cores: list[float] = []
    for mount in parse_mounts(_read(root / "proc/self/mountinfo")):
        for path in {membership[name] for name in mount.controllers if name in membership}:
            for folder in list_folders(mount, path):
                place = root / folder.lstrip("/")
                memory.extend(_read_memory(place, mount.version))
                cores.extend(_read_cores(place, mount.version))
    return Bounds(tuple(memory), tuple(cores))


def parse_membership(text: str) -> dict[str, str]:
    """Return the group of each controller; version 2 has the name ``""``.

    Examples
    --------
    >>> parse_membership("4:memory:/job/7\\n1:cpu,cpuacct:/\\n0::/user.slice")
    {'memory': '/job/7', 'cpu': '/', 'cpuacct': '/', '': '/user.slice'}
    """
    membership = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, found, path = rest.partition(":")
        if number.isdigit() and found:
            membership.update(dict.fromkeys(controllers.split(","), path))
    return membership


def parse_mounts(text: str) -> list[Mount]:
    """Return the control group trees among the mounts of a process.

    Examples
    --------
    >>> parse_mounts("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory")
    [Mount(point='/sys/fs/cgroup/memory', root='/', version=1, controllers=('memory',))]
    """
    mounts = []
    for line in text.splitlines():
        where, _, what = line.partition(" - ")
        fields, kind = where.split(), what.split()
        if len(fields) < 5 or not kind or kind[0] not in ("cgroup", "cgroup2"):
            continue
        version = 2 if kind[0] == "cgroup2" else 1
        options = kind[-1].split(",")
        ours = tuple(name for name in options if name in ("memory", "cpu"))
        controllers = ("",) if version == 2 else ours
        mounts.append(Mount(_unescape(fields[4]), _unescape(fields[3]), version, controllers))
    return mounts


def list_folders(mount: Mount, path: str) -> list[str]:
    """Return the folder of a group and those of its ancestors, as far as they are mounted.

    Examples
    --------
    >>> list_folders(Mount("/cg", "/", 2, ("",)), "/job/7")
    ['/cg/job/7', '/cg/job', '/cg']

    In a container the mount starts at the container's own group.

    >>> list_folders(Mount("/cg", "/docker/a1", 1, ("memory",)), "/docker/a1/inner")
    ['/cg/inner', '/cg']
    """
    own, top = PurePosixPath(path), PurePosixPath(mount.root)
    if ".." in own.parts or not own.is_relative_to(top):
        return [mount.point]
    inner = PurePosixPath(mount.point) / own.relative_to(top)
    folders = [inner, *inner.parents]
    return [str(f) for f in folders if f.is_relative_to(mount.point)]


def parse_inactive(text: str, version: int) -> int:
    """Return the bytes of file cache that the kernel gives back when asked.

    Examples
    --------
    >>> parse_inactive("anon 10\\ninactive_file 4096", 2)
    4096
    """
    name = "inactive_file" if version == 2 else "total_inactive_file"
    values = dict(line.split()[:2] for line in text.splitlines() if len(line.split()) >= 2)
    return _parse_count(values.get(name, "")) or 0


def parse_quota(quota: str, period: str) -> float | None:
    """Return the cores a quota amounts to; none if there is no limit.

    Examples
    --------
    >>> parse_quota("150000", "100000")
    1.5
    >>> parse_quota("max", "100000"), parse_quota("-1", "100000")
    (None, None)
    """
    allowed, each = _parse_count(quota), _parse_count(period)
    return allowed / each if allowed and each else None


def _read_memory(folder: Path, version: int) -> Iterator[MemoryBound]:
    limits = ("memory.max", "memory.high") if version == 2 else ("memory.limit_in_bytes",)
    usage = "memory.current" if version == 2 else "memory.usage_in_bytes"
    found = [limit for name in limits if (limit := _parse_count(_read(folder / name))) is not None]
    if found:
        used = _parse_count(_read(folder / usage)) or 0
        cache = parse_inactive(_read(folder / "memory.stat"), version)
        yield MemoryBound(min(found), max(0, used - cache))


def _read_cores(folder: Path, version: int) -> Iterator[float]:
    if version == 2:
        quota, _, period = _read(folder / "cpu.max").strip().partition(" ")
    else:
        quota = _read(folder / "cpu.cfs_quota_us")
        period = _read(folder / "cpu.cfs_period_us")
    cores = parse_quota(quota, period)
    if cores is not None:
        yield cores


def _parse_count(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isdigit() else None


def _unescape(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code.group(1), 8)), path)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
