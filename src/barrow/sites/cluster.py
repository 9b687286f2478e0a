"""A cluster that is up: its client, its workers, and how to end it.

The same handle for workers started here and for a Dask cluster somebody else
started. It closes what was made for it and nothing else.
"""

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from html import escape
from pathlib import Path
from typing import Any

from barrow.errors import ClusterError, InputError
from barrow.model.site import THREADS, Offer, Site
from barrow.sites.machine import read_machine
from barrow.sites.nearness import is_on_this_machine
from barrow.sites.security import Credentials
from barrow.sites.staffing import Rest
from barrow.sites.waiting import WaitingLine, describe_wait, describe_waiting
from barrow.sites.workers import (
    WorkerExit,
    WorkerInfo,
    describe_workers,
    format_html,
    parse_worker,
)

FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.5


class Cluster:
    """Workers that are ready, as a context manager or until :meth:`close`.

    Its client is Dask's current one for as long as the cluster is open.

    Parameters
    ----------
    client
        A synchronous ``distributed.Client`` that is connected.
    manager
        The Dask cluster object that can change the number of workers, if there is one.
    is_own_client
        Whether the client is closed with the cluster.
    finish
        Called last when the cluster closes.
    """

    def __init__(
        self,
        client: Any,
        *,
        manager: Any = None,
        is_own_client: bool = False,
        finish: Callable[[], None] | None = None,
    ) -> None:
        self.client = client
        self._manager = manager
        self._is_own_client = is_own_client
        self._finish = finish
        self._address = str(client.scheduler.address)
        self._is_open = True
        self._lock = threading.Lock()
        self._current = ExitStack()
        self._pid = os.getpid()
        self._make_current()
        # Also keeps a cluster alive that was opened without a name for it.
        atexit.register(self._close_at_exit)

    @property
    def exits(self) -> list[WorkerExit]:
        """Ends of worker processes that nobody had asked for, in order."""
        return list(getattr(self._manager, "exits", ()))

    @property
    def failures(self) -> list[str]:
        """Why workers are not started any more, a sentence for each."""
        return list(getattr(self._manager, "failures", ()))

    @property
    def losses(self) -> list[str]:
        """Why jobs were lost, a text for each, in order."""
        return list(getattr(self._manager, "losses", ()))

    @property
    def logs(self) -> list[Path]:
        """Files in which jobs say what goes wrong; empty where there are no jobs."""
        return list(getattr(self._manager, "logs", ()))

    def take_news(self) -> list[str]:
        """Return what happened to jobs since this was asked last."""
        news = getattr(self._manager, "news", None)
        return [news.popleft() for _ in range(len(news))] if news else []

    @property
    def dashboard_link(self) -> str | None:
        """Address of Dask's dashboard, or none."""
        self._check_open()
        try:
            return self.client.dashboard_link or None
        except (KeyError, OSError):
            return None

    @property
    def workers(self) -> tuple[WorkerInfo, ...]:
        """The workers the scheduler knows now."""
        self._check_open()
        return tuple(
            parse_worker(address, worker) for address, worker in self._ask_scheduler().items()
        )

    @property
    def credentials(self) -> Credentials | None:
        """What whoever wants to use the cluster has to show; None if it is not ours."""
        return self._manager.credentials if self.is_supervised else None

    @property
    def is_supervised(self) -> bool:
        """Whether the workers were started from here, and are replaced when one is lost."""
        return getattr(self._manager, "is_supervised", False) is True

    def scale(self, n: int) -> None:
        """Ask for ``n`` workers; :meth:`wait` tells when they are there.

        Ends what :meth:`adapt` has begun.
        """
        self._check_open()
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise InputError(f"n={n!r} is not a number of workers. Give a whole number.")
        if not hasattr(self._manager, "scale"):
            raise InputError(
                f"The number of workers at {self._address} can't be changed from here.\n"
                "Change it where the cluster was started."
            )
        if self.is_supervised:
            self._manager.fix_number()
        self._manager.scale(n)

    def adapt(self, minimum: int = 1, maximum: int | None = None) -> None:
        """Let the number of workers follow the work, until :meth:`scale` is called.

        While barrow runs something there are as many workers as the rest of it can use:
        one more only if it would work for at least as long as it takes to start. Those
        beyond the minimum end when there is nothing for them to do, half a minute
        after a run at the latest. The record of a run tells how many there were.

        Parameters
        ----------
        minimum, maximum
            Between which numbers; by default one, and what the machine or the partition
            has room for.
        """
        self._check_open()
        if not self.is_supervised:
            raise InputError(
                f"The number of workers at {self._address} can't be changed from here.\n"
                "Change it where the cluster was started: a Dask cluster has an adapt of its own."
            )
        self._manager.follow_work(minimum, maximum)

    def staff(self, key: str, rest: Rest) -> int | None:
        """Have as many workers as the rest of a run can use; None if nobody asked for that.

        Parameters
        ----------
        key
            As it was given to :meth:`hosting`.
        """
        if not self.is_supervised or not self._manager.is_adapting:
            return None
        self._manager.staff(key, rest)
        return int(self._manager.wanted)

    def wait(self, n: int = 1, timeout: float = 360.0) -> "Cluster":
        """Wait until at least ``n`` workers are there, and return the cluster.

        Parameters
        ----------
        n
            Workers to wait for.
        timeout
            Seconds after which to give up with :class:`ClusterError`.
        """
        self._check_open()
        start, pause = time.monotonic(), FIRST_PAUSE_SECONDS
        line = WaitingLine(quiet=getattr(self._manager, "is_quiet", False))
        wanted = max(n, getattr(self._manager, "wanted", n))
        try:
            while (came := len(self._ask_scheduler())) < n:
                waited = time.monotonic() - start
                if self.failures or waited >= timeout:
                    raise ClusterError(
                        describe_wait(
                            self._address,
                            n,
                            came,
                            waited,
                            failures=self.failures,
                            queue=self._describe_queue(),
                        )
                    )
                line.update(waited, describe_waiting(came, wanted, waited, self._describe_queue()))
                time.sleep(min(pause, timeout - waited))
                pause = min(LONGEST_PAUSE_SECONDS, pause * 1.2)
        finally:
            line.close()
        return self

    def site(self) -> Site:
        """Return what the cluster offers now.

        Workers may differ: threads and memory are those of the smallest. A limit of
        zero means that the workers have none and are on other machines.
        """
        workers = self.workers
        machine = read_machine()
        is_local = self._is_local(workers)
        share = machine.available_bytes // max(1, len(workers))
        limits = [worker.limit_bytes for worker in workers if worker.limit_bytes]
        if not limits and workers and is_local:
            limits = [share]
        crew = {
            worker.address: Offer(
                worker.threads,
                worker.limit_bytes or share,
                # Of our own workers all is for the run; leaks are dealt with there.
                0 if self.is_supervised else worker.held_bytes,
                worker.resources,
            )
            for worker in workers
        }
        if self.is_supervised:
            # Those that are still to come count: work must be there for them when they do.
            for number in range(len(workers), self._manager.expected):
                crew[f"to come {number}"] = self._manager.offer
        return Site(
            kind="dask",
            machine=machine,
            workers=len(crew),
            threads=min((offer.threads for offer in crew.values()), default=1),
            limit_bytes=min(limits, default=0),
            is_local=is_local,
            address=self._address,
            is_own=self.is_supervised and is_local,
            crew=crew,
        )

    @contextmanager
    def hosting(
        self, key: str, asked: Mapping[str, float] | None = None, *, in_each: bool = False
    ) -> Iterator[None]:
        """Be ready for the tasks of one run, whose keys begin with this one.

        Workers offer their memory as a resource, those that come later as well, and a
        worker that is lost is reported at once instead of Dask trying three more. Other
        tasks on the cluster are left as they are.

        Parameters
        ----------
        asked
            What a task asks for beside threads and memory. Of what no worker of our own
            offers, this machine has one: it goes to the first worker.
        in_each
            Whether there are as many workers as tasks may run at once: then each has it.
        """
        from barrow.sites.hosting import hosting

        workers = self.workers
        missing = [n for n in asked or {} if not any(w.resources.get(n) for w in workers)]
        if not in_each and THREADS in missing:
            missing.remove(THREADS)  # every worker offers as many as it has
        lent = {}
        if self.is_supervised and asked and missing:
            amounts = {name: asked[name] if in_each else 1.0 for name in missing}
            lent = {w.name: amounts for w in (workers if in_each else workers[:1])}
        if self.is_supervised:
            self._manager.begin_run(key)
        try:
            with hosting(self.client, key, self.site(), lent):
                yield
        finally:
            if self.is_supervised:
                self._manager.end_run(key)

    def close(self) -> None:
        """End what was started for this cluster; again is allowed."""
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
        atexit.unregister(self._close_at_exit)
        with suppress(ValueError):
            # Raised when closed from another thread than opened; what it would
            # undo is then not visible here anyway.
            self._current.close()
        try:
            if self._is_own_client:
                self.client.close()
        finally:
            if self._finish is not None:
                self._finish()

    def __enter__(self) -> "Cluster":
        self._check_open()
        self._make_current()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._is_open:
            return f"<Cluster {self._address}: closed>"
        try:
            return f"<Cluster {self._address}: {describe_workers(self.workers)}>"
        except ClusterError:
            return f"<Cluster {self._address}: not reachable>"

    def _repr_html_(self) -> str:
        text = f"<pre>{escape(repr(self))}</pre>"
        if self._is_open:
            with suppress(ClusterError):  # the line above says that it is not reachable
                text += format_html(self.workers)
        link = self.dashboard_link if self._is_open else None
        if link is None:
            return text
        return f'{text}<a href="{escape(link)}" target="_blank">{escape(link)}</a>'

    def _describe_queue(self) -> str:
        describe = getattr(self._manager, "describe_queue", None)
        return "" if describe is None else str(describe())

    def _make_current(self) -> None:
        from distributed import Client

        try:
            is_current = Client.current() is self.client
        except ValueError:
            is_current = False
        if not is_current:
            self._current.enter_context(self.client.as_current())

    def _ask_scheduler(self) -> Mapping[str, Any]:
        try:
            # Not client.scheduler_info(): what that returns is overwritten every few seconds
            # by an answer without workers, now and then just before it is read.
            info = self.client.sync(self.client.scheduler.identity)
        except (OSError, AttributeError, RuntimeError) as error:
            # A client that has lost its scheduler has none to ask.
            raise ClusterError(
                f"The scheduler at {self._address} does not answer: {error}.\n"
                "See whether it still runs, and open a new cluster."
            ) from error
        workers: Mapping[str, Any] = info["workers"]
        return workers

    def _is_local(self, workers: tuple[WorkerInfo, ...]) -> bool:
        if self.is_supervised:
            return bool(self._manager.is_local)
        return is_on_this_machine(self.client, workers)

    def _check_open(self) -> None:
        if not self._is_open:
            raise ClusterError(
                f"The cluster at {self._address} is closed. Open a new one with barrow.cluster()."
            )

    def _close_at_exit(self) -> None:
        # A fork of the process that opened the cluster must leave it alone.
        if os.getpid() == self._pid:
            with suppress(Exception):
                self.close()
