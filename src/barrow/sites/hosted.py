"""A scheduler in this process, for workers of our own: encrypted, with a dashboard on demand.

Importing this module imports Dask.
"""

import logging
from importlib.util import find_spec
from typing import Any

from distributed import Scheduler
from distributed.core import Status
from distributed.deploy.spec import SpecCluster

from barrow.sites.security import Credentials, make_security

LOOPBACK = "127.0.0.1"


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

    def __init__(
        self,
        *,
        host: str,
        scratch: str,
        credentials: Credentials,
        workers: dict[str, Any] | None = None,
        worker: dict[str, Any] | None = None,
    ) -> None:
        self._has_dashboard = False
        security = make_security(credentials)
        super().__init__(
            workers=workers,
            worker=worker,
            scheduler={
                "cls": Scheduler,
                "options": {
                    "host": host,
                    "port": 0,
                    "protocol": "tls",
                    "security": security,
                    # Added when somebody asks for its address: loading it takes as long
                    # as all the rest of the start.
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
        from distributed.dashboard.scheduler import connect

        scheduler: Any = self.scheduler
        if not self._has_dashboard:
            connect(scheduler.http_application, scheduler.http_server, scheduler)
            self._has_dashboard = True
