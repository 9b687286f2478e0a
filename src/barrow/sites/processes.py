"""Worker processes on this machine, for a scheduler in this process.

A supervisor for each one notes how it ended and puts another in its place. Importing
this module imports Dask.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any

from distributed.core import Status
from distributed.deploy.cluster import Cluster as DaskCluster

from barrow.errors import InputError
from barrow.model.site import Machine, Offer
from barrow.sites.environment import count_library_threads, make_environment
from barrow.sites.hosted import LOOPBACK, HostedCluster
from barrow.sites.security import Credentials
from barrow.sites.worker_process import WorkerProcess
from barrow.sites.workers import WorkerExit
from barrow.units import format_bytes


class LocalProcesses(HostedCluster):
    """A scheduler in this process and workers in others, all on the loopback interface.

    Parameters
    ----------
    machine
        What the workers share.
    workers, threads, memory_bytes
        How many workers to start, and what each may use.
    scratch
        Folder for what the workers spill, which also holds the credentials.
    credentials
        What client, scheduler and workers show each other.
    search_path
        Folders in which the workers look for modules.
    resources
        What each of the first workers offers beside threads and memory.
    """

    start_seconds = 1.0

    def __init__(
        self,
        machine: Machine,
        workers: int,
        threads: int,
        memory_bytes: int,
        *,
        scratch: str,
        credentials: Credentials,
        search_path: list[str],
        resources: Sequence[Mapping[str, float]] = (),
    ) -> None:
        self.exits: list[WorkerExit] = []
        self.failures = []
        self._machine = machine
        self._threads = threads
        self._memory_bytes = memory_bytes
        self._scratch = scratch
        self._search_path = search_path
        shares = [*resources, *({} for _ in range(len(resources), workers))]
        super().__init__(
            host=LOOPBACK,
            scratch=scratch,
            credentials=credentials,
            offer=Offer(threads, memory_bytes),
            most_workers=max(1, min(machine.cores // threads, self._count_fitting())),
            workers={
                self._new_worker_name(number): self._make_spec(workers, share)
                for number, share in enumerate(shares)
            },
            worker=self._make_spec(workers),
        )

    @property
    def wanted(self) -> int:  # type: ignore[override]
        """How many workers there are when none has just been lost."""
        return len(self.worker_spec)

    def scale(self, n: int = 0, memory: Any = None, cores: Any = None) -> Any:
        """Ask for this many workers."""
        self._check_room(n)
        self.new_spec = self._make_spec(max(1, n))
        return super().scale(n, memory, cores)

    def follow_work(self, minimum: int = 1, maximum: int | None = None) -> None:
        """Have as many workers from now on as runs can use, within bounds."""
        self._check_room(max(minimum, maximum or 0))
        super().follow_work(minimum, maximum)

    def change_number(self, n: int) -> None:
        """Have so many workers; those that have something to do are the last to go."""
        busy = self._busy()
        # Dask takes away the last ones.
        by_need = sorted(self.worker_spec.items(), key=lambda item: item[0] not in busy)
        self.worker_spec = dict(by_need)
        self.scale(n)

    def _count_fitting(self) -> int:
        return self._machine.total_bytes // self._memory_bytes

    def _check_room(self, n: int) -> None:
        if n > self._count_fitting():
            raise InputError(
                f"{n} workers of {format_bytes(self._memory_bytes)} need more than the "
                f"{format_bytes(self._machine.total_bytes)} of memory here.\n"
                f"Ask for at most {self._count_fitting()} workers, or "
                f"open a cluster with less memory for each."
            )

    def _make_spec(
        self, workers: int, resources: Mapping[str, float] | None = None
    ) -> dict[str, Any]:
        library_threads = count_library_threads(
            self._machine.cores, workers=workers, threads=self._threads
        )
        return {
            "cls": WorkerProcess,
            "options": {
                "options": {
                    "nthreads": self._threads,
                    "memory_limit": self._memory_bytes,
                    "local_directory": self._scratch,
                    "host": LOOPBACK,
                    "dashboard": False,
                    "resources": dict(resources or {}),
                    "credentials": self._scratch,
                    "pythonpath": os.environ.get("PYTHONPATH"),
                },
                "environment": make_environment(
                    os.environ,
                    search_path=self._search_path,
                    library_threads=library_threads,
                    tasks=self._threads,
                ),
                "exits": self.exits,
                "failures": self.failures,
            },
        }

    def _new_worker_name(self, worker_number: int) -> str:
        # Text, so that the name we show can be given to Dask as well.
        return str(worker_number)

    def _update_worker_status(self, op: str, msg: Any) -> None:
        if op == "add":
            for worker in msg["workers"].values():
                if process := self.workers.get(worker["name"]):
                    process.mark_arrival()
        # Not the method of SpecCluster: it drops a worker that stays away for a while,
        # but here a supervisor brings it back.
        DaskCluster._update_worker_status(self, op, msg)

    async def _close(self) -> None:
        # All is over, so nothing has to be moved from worker to worker first.
        if self.status == Status.running:
            async with self._lock:
                self.worker_spec.clear()
                await asyncio.gather(*(worker.close() for worker in self.workers.values()))
                self.workers.clear()
        await super()._close()
