"""A scheduler in this process, for workers of our own: encrypted, with a dashboard on demand.

Importing this module imports Dask.
"""

import logging
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from distributed import Scheduler
from distributed.core import Status
from distributed.deploy.spec import SpecCluster

from barrow.model.site import Offer
from barrow.sites.security import Credentials, make_security
from barrow.sites.staffing import Bounds, Rest, count_useful, make_bounds

LOOPBACK = "127.0.0.1"
REST_SECONDS = 30.0
"""Workers beyond the minimum are kept for so long after a run: another may follow."""


class HostedScheduler(Scheduler):
    """A scheduler without pages about its state, until somebody asks for them.

    They have no encryption: everybody on this machine can look at them. And loading what
    draws them takes as long as all the rest of the start.
    """

    def start_http_server(self, *arguments: Any, **options: Any) -> None:
        """Remember what to serve; called by Dask at the start."""
        self._pages = (arguments, options)

    def open_pages(self) -> None:
        """Serve the pages, and the dashboard among them."""
        from distributed.dashboard.scheduler import connect

        arguments, options = self._pages
        super().start_http_server(*arguments, **options)
        connect(self.http_application, self.http_server, self)


class HostedCluster(SpecCluster):
    """A scheduler in this process that only holders of the credentials can use.

    Parameters
    ----------
    host
        Address to which the scheduler listens.
    scratch
        Folder for what the scheduler keeps on disk.
    credentials
        What client, scheduler and workers show each other.
    offer
        What each worker will offer.
    most_workers
        How many there can be.
    workers, worker
        Those of ``SpecCluster``.
    """

    is_supervised = True
    """Whether a lost worker is replaced from here."""
    is_local = True
    """Whether the workers can share the memory of this machine."""
    is_quiet = True
    """Whether nothing is said while workers are waited for."""
    failures: list[str]
    """Why workers are not started any more."""
    start_seconds: float
    """Until a worker that is asked for has come."""
    wanted: int
    """How many workers there are when none has just been lost."""

    def __init__(
        self,
        *,
        host: str,
        scratch: str,
        credentials: Credentials,
        offer: Offer,
        most_workers: int,
        workers: dict[str, Any] | None = None,
        worker: dict[str, Any] | None = None,
    ) -> None:
        self.credentials = credentials
        self.offer = offer
        self._most_workers = most_workers
        self._bounds: Bounds | None = None
        self._needs: dict[str, int] = {}
        self._n_runs = 0  # that have begun
        self._has_dashboard = False
        security = make_security(credentials)
        super().__init__(
            workers=workers,
            worker=worker,
            scheduler={
                "cls": HostedScheduler,
                "options": {
                    "host": host,
                    "port": 0,
                    "protocol": "tls",
                    "security": security,
                    "dashboard": False,
                    "dashboard_address": f"{LOOPBACK}:0",
                    "local_directory": scratch,
                },
            },
            security=security,
            # Dask reports each lost worker here as well as in the exception that follows.
            # The level is restored when the cluster closes.
            silence_logs=logging.CRITICAL,
            name="barrow",
        )

    @property
    def expected(self) -> int:
        """How many workers a run should be planned for."""
        return self.wanted if self._bounds is None else self._bounds.maximum

    @property
    def is_adapting(self) -> bool:
        """Whether the number of workers follows the work."""
        return self._bounds is not None

    def change_number(self, n: int) -> None:
        """Have so many workers; those that have something to do are the last to go."""
        raise NotImplementedError

    def follow_work(self, minimum: int = 1, maximum: int | None = None) -> None:
        """Have as many workers from now on as runs can use, within bounds."""
        self._bounds = make_bounds(minimum, maximum, most=self._most_workers)
        self.change_number(self._bounds.clip(self.wanted))

    def fix_number(self) -> None:
        """Let the number of workers be as it is from now on."""
        self._bounds = None

    def begin_run(self, key: str) -> None:
        """Note that somebody needs workers."""
        self._n_runs += 1
        self._needs[key] = 0

    def staff(self, key: str, rest: Rest) -> None:
        """Have as many workers as the rest of a run can use, beside what others need."""
        if self._bounds is None:
            return
        others = sum(need for run, need in self._needs.items() if run != key)
        asked = max(1, self.wanted - others)
        scheduler: Any = self.scheduler
        there = min(asked, len(scheduler.workers))
        self._needs[key] = count_useful(
            rest, asked=asked, there=there, start_seconds=self.start_seconds
        )
        number = self._bounds.clip(sum(self._needs.values()))
        if number < self.wanted:
            number = min(self.wanted, max(number, len(self._busy())))
        if number != self.wanted:
            self.change_number(number)

    def end_run(self, key: str) -> None:
        """Note that a run has ended; what nobody needs for a while is given back."""
        self._needs.pop(key, None)
        if self._bounds is not None and self.status == Status.running:
            loop: Any = self.loop
            # Not from this thread: the loop belongs to another.
            loop.add_callback(loop.call_later, REST_SECONDS, self._rest, self._n_runs)

    def _rest(self, n_runs: int) -> None:
        is_idle = not self._needs and self._n_runs == n_runs
        if is_idle and self._bounds is not None and self.status == Status.running:
            self.change_number(self._bounds.minimum)

    def _busy(self) -> set[str]:
        """Return the names of workers that have something to do."""
        scheduler: Any = self.scheduler
        workers: Mapping[str, Any] = dict(scheduler.workers)
        return {str(worker.name) for worker in workers.values() if worker.processing}

    @property
    def dashboard_link(self) -> str:
        """Address of Dask's dashboard; empty if bokeh is not installed."""
        if not self._has_dashboard:
            if find_spec("bokeh") is None or self.status != Status.running:
                return ""
            import distributed.dashboard.scheduler  # noqa: F401

            self.sync(self._add_dashboard)
        scheduler: Any = self.scheduler
        # Not Dask's own link: that has the host of the scheduler, where nothing is served.
        return f"http://{LOOPBACK}:{scheduler.http_server.port}/status"

    async def _add_dashboard(self) -> None:
        scheduler: Any = self.scheduler
        if not self._has_dashboard:
            scheduler.open_pages()
            self._has_dashboard = True
