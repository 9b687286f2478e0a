"""Look at the worker processes of another process from outside, every 10 ms."""

import threading
from dataclasses import dataclass, field
from typing import Any, Self

import psutil

INTERVAL_SECONDS = 0.01


@dataclass
class Watcher:
    """Keeps the most memory that each worker of a process was seen to hold.

    The kernel keeps a highest mark for each process, which knows of peaks between two looks. The
    workers set it back before each task, so it is looked at as often as the rest.
    """

    pid: int
    resident: dict[int, int] = field(default_factory=dict)
    """By process: most bytes of resident memory, as seen."""
    marks: dict[int, int] = field(default_factory=dict)
    """By process: the highest mark, as seen."""
    client_bytes: int = 0
    looks: int = 0

    def __enter__(self) -> Self:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def worst_bytes(self) -> int:
        """The most that any worker held."""
        return max([*self.resident.values(), *self.marks.values()], default=0)

    def facts(self) -> dict[str, Any]:
        """Return what was seen, as numbers to keep."""
        return {
            "worst_worker_bytes": self.worst_bytes,
            "resident_bytes": sorted(self.resident.values()),
            "highest_marks": sorted(self.marks.values()),
            "client_bytes": self.client_bytes,
            "looks": self.looks,
        }

    def _watch(self) -> None:
        client = psutil.Process(self.pid)
        workers: dict[int, bool] = {}
        while not self._ended.wait(INTERVAL_SECONDS):
            try:
                children = client.children()
                self.client_bytes = max(self.client_bytes, client.memory_info().rss)
            except psutil.NoSuchProcess:
                return
            self.looks += 1
            for child in children:
                try:
                    if not workers.get(child.pid):
                        workers[child.pid] = "barrow.sites.worker" in child.cmdline()
                    if workers[child.pid]:
                        self._look(child.pid)
                except (psutil.Error, OSError):
                    continue

    def _look(self, pid: int) -> None:
        with open(f"/proc/{pid}/status") as file:
            found = dict(line.split(":", 1) for line in file if line.startswith("Vm"))
        for name, kept in (("VmRSS", self.resident), ("VmHWM", self.marks)):
            if name in found:
                kept[pid] = max(kept.get(pid, 0), 1024 * int(found[name].split()[0]))
