"""Follow a process and all its descendants: memory, CPU and disk of each.

On Linux from ``/proc`` with nothing but the standard library, because a recorder must be
small and quick to start; elsewhere with psutil.
"""

import os
import sys
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
NOT_OURS = b"barrow-live-page"
"""A word on the command line of a process that belongs to the watching."""
MOST_OPEN = 400
"""Files kept open for quick reading; those of more processes are opened each time."""


class Use(NamedTuple):
    """What a process has used since it began."""

    cpu_seconds: float
    disk_read_bytes: int | None
    disk_written_bytes: int | None
    peak_bytes: int | None
    """Most it ever held, by the kernel's own count."""


class ProcessTree(Protocol):
    """A process and its descendants; one that was seen stays known when its parent ends."""

    def find(self) -> None:
        """Look for processes that have come."""

    def adopt(self, pid: int) -> None:
        """Follow a process from elsewhere as well, with its descendants."""

    def read_memory(self) -> dict[int, int]:
        """Return the resident bytes of each that lives; those that ended are forgotten."""

    def read_use(self, pid: int) -> Use | None:
        """Return what a process has used; None if it is gone."""

    def close(self) -> None:
        """Let go of all files."""


def follow(root: int, ignored: frozenset[int] = frozenset()) -> ProcessTree:
    """Return the tree below a process, without some of its processes."""
    return LinuxTree(root, ignored) if sys.platform == "linux" else PortableTree(root, ignored)


class LinuxTree:
    """The tree, from ``/proc``.

    Examples
    --------
    >>> tree = LinuxTree(os.getpid())
    >>> tree.read_memory()[os.getpid()] > 10**6
    True
    """

    def __init__(self, root: int, ignored: frozenset[int] = frozenset()) -> None:
        self._ignored = ignored
        self._files: dict[int, int] = {}
        self._others: set[int] = set()
        self._family = {root}
        self._listed: set[str] = set()
        self._open(root)

    def find(self) -> None:
        """Look for processes that have come: only numbers that were not there before."""
        listed = {name for name in os.listdir("/proc") if name.isdigit()}
        new = {int(name): _read_parent(name) for name in listed - self._listed}
        self._listed = listed
        while found := {pid for pid, parent in new.items() if parent in self._family}:
            for pid in found:
                del new[pid]
                if NOT_OURS not in _read(f"/proc/{pid}/cmdline"):
                    self.adopt(pid)

    def adopt(self, pid: int) -> None:
        """Follow a process from elsewhere as well, with its descendants."""
        if pid not in self._ignored:
            self._family.add(pid)
            self._open(pid)

    def read_memory(self) -> dict[int, int]:
        """Return the resident bytes of each that lives; those that ended are forgotten."""
        found = {}
        for pid, file in list(self._files.items()):
            try:
                found[pid] = int(os.pread(file, 64, 0).split(None, 2)[1]) * PAGE_BYTES
            except (OSError, IndexError):
                os.close(self._files.pop(pid))
                self._family.discard(pid)
        for pid in list(self._others):
            text = _read(f"/proc/{pid}/statm")
            if text:
                found[pid] = int(text.split(None, 2)[1]) * PAGE_BYTES
            else:
                self._others.discard(pid)
                self._family.discard(pid)
        return found

    def read_use(self, pid: int) -> Use | None:
        """Return what a process has used; None if it is gone."""
        stat = _read(f"/proc/{pid}/stat")
        if not stat:
            return None
        fields = stat.rpartition(b")")[2].split()
        counts = dict(line.split(b": ") for line in _read(f"/proc/{pid}/io").splitlines())
        peak = None
        for line in _read(f"/proc/{pid}/status").splitlines():
            if line.startswith(b"VmHWM:"):
                peak = int(line.split()[1]) * 1024
                break
        return Use(
            (int(fields[11]) + int(fields[12])) / TICKS,
            _as_int(counts.get(b"read_bytes")),
            _as_int(counts.get(b"write_bytes")),
            peak,
        )

    def close(self) -> None:
        """Let go of all files."""
        while self._files:
            os.close(self._files.popitem()[1])

    def _open(self, pid: int) -> None:
        if pid in self._files or pid in self._others:
            return
        if len(self._files) >= MOST_OPEN:
            self._others.add(pid)
            return
        with suppress(OSError):
            # A file of a process that has ended never shows the next one of that number.
            self._files[pid] = os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)


class PortableTree:
    """The tree, by psutil."""

    def __init__(self, root: int, ignored: frozenset[int] = frozenset()) -> None:
        import psutil

        self._psutil = psutil
        self._ignored = ignored
        self._known = {root: psutil.Process(root)}

    def find(self) -> None:
        """Look for processes that have come."""
        for process in list(self._known.values()):
            with suppress(self._psutil.Error):
                for child in process.children(recursive=True):
                    if child.pid not in self._ignored and not self._is_watching(child):
                        self._known.setdefault(child.pid, child)

    def adopt(self, pid: int) -> None:
        """Follow a process from elsewhere as well, with its descendants."""
        with suppress(self._psutil.Error):
            self._known.setdefault(pid, self._psutil.Process(pid))

    def read_memory(self) -> dict[int, int]:
        """Return the resident bytes of each that lives; those that ended are forgotten."""
        found = {}
        for pid, process in list(self._known.items()):
            try:
                found[pid] = int(process.memory_info().rss)
            except self._psutil.Error:
                del self._known[pid]
        return found

    def _is_watching(self, process: Any) -> bool:
        return NOT_OURS.decode() in process.cmdline()

    def read_use(self, pid: int) -> Use | None:
        """Return what a process has used; None if it is gone."""
        try:
            times = self._psutil.Process(pid).cpu_times()
        except self._psutil.Error:
            return None
        return Use(times.user + times.system, None, None, None)

    def close(self) -> None:
        """Nothing is held open."""


def _read_parent(pid: str) -> int:
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _as_int(text: bytes | None) -> int | None:
    return None if text is None else int(text)


def _read(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, 8192)
    except OSError:
        return b""
    finally:
        os.close(file)
