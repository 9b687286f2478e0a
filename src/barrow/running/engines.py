"""Three engines with one face: in line, threads of this process, a Dask client.

An engine takes batches of units and gives back reports in the order in which
they end. It decides nothing.
"""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

from barrow.errors import ClusterError, TravelError
from barrow.running.asking import Asked, Asking, read_offers
from barrow.running.backlog import Batch
from barrow.running.lookout import LOOK_SECONDS, Lookout
from barrow.running.parcel import check_parcel, pack, perform_parcel
from barrow.running.task import TaskReport, Work, perform


@dataclass(frozen=True)
class Setback:
    """A batch that was not done."""

    batch: Batch
    error: BaseException
    """What the first of its units raised, or how its worker was lost."""
    is_loss: bool = False
    """Whether the worker was lost; who is to blame is not known."""


Outcome = tuple[Batch, TaskReport] | Setback
"""A batch with its report, or what went wrong."""


class Engine(Protocol):
    """Runs batches of units."""

    window: int
    """How many batches to hand in ahead."""
    batch_seconds: float
    """How long a batch should last so that handing it in costs little."""

    def submit(self, batch: Batch) -> None:
        """Hand in some units."""

    def collect(self) -> list[Outcome]:
        """Wait until something ends and return it."""

    def stop(self) -> None:
        """Drop what has not begun and wait for what has."""


class InlineEngine:
    """Runs a batch when its report is asked for, in the calling thread."""

    window = 1
    batch_seconds = 0.05

    def __init__(self, work: Work) -> None:
        self._work = work
        self._waiting: deque[Batch] = deque()

    def submit(self, batch: Batch) -> None:
        """Hand in some units."""
        self._waiting.append(batch)

    def collect(self) -> list[Outcome]:
        """Run the oldest batch."""
        batch = self._waiting.popleft()
        try:
            return [(batch, perform(self._work, batch))]
        except Exception as error:
            return [Setback(batch, error)]

    def stop(self) -> None:
        """Drop what has not begun."""
        self._waiting.clear()


class ThreadEngine:
    """Runs batches in threads of this process."""

    batch_seconds = 0.02

    def __init__(self, work: Work, threads: int) -> None:
        self._work = work
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="barrow")
        self._futures: dict[Future[TaskReport], Batch] = {}
        self.window = 2 * threads

    def submit(self, batch: Batch) -> None:
        """Hand in some units."""
        self._futures[self._pool.submit(perform, self._work, batch)] = batch

    def collect(self) -> list[Outcome]:
        """Wait for the next batches to end."""
        done, _ = wait(self._futures, return_when=FIRST_COMPLETED)
        outcomes: list[Outcome] = []
        for future in done:
            batch, error = self._futures.pop(future), future.exception()
            outcomes.append((batch, future.result()) if error is None else Setback(batch, error))
        return outcomes

    def stop(self) -> None:
        """Drop what has not begun and wait for what has."""
        self._pool.shutdown(wait=True, cancel_futures=True)


# Workers that are busy with other things for so long are not waited for.
CHECK_SECONDS = 10.0
# A worker that is replaced needs a moment until it offers what the last one did.
GRACE_SECONDS = 10.0


class DaskEngine:
    """Runs batches on the workers of any Dask client.

    Parameters
    ----------
    slots
        Tasks that run at once.
    key
        With which the keys of all tasks begin.
    asking
        What batches ask of a worker; nothing, if it is not given.
    lookout
        Tells whether workers are there.
    """

    batch_seconds = 0.1

    def __init__(
        self,
        work: Work,
        client: Any,
        slots: int,
        name: str,
        *,
        key: str | None = None,
        asking: Asking | None = None,
        lookout: Lookout | None = None,
        recycle_bytes: int = 0,
        on_recycle: Callable[[TaskReport], None] | None = None,
    ) -> None:
        self._client = client
        self._name = name
        # A worker that holds more than this after a task is replaced by a fresh one.
        self._recycle_bytes = recycle_bytes
        self._on_recycle = on_recycle
        self._recycled: set[int] = set()
        # What is heavy stays here and is handed out block by block.
        self._work = work
        self._raw_parcel = parcel = pack(work.light(), name)
        self._key = key or f"{name}-{parcel.token}"
        self._asking = asking or Asking(work.budget_bytes, slots)
        self._lookout = lookout or Lookout(client)
        self._count = 0
        self._send_parcel()
        # Workers that have the parcel, or were told to fetch it.
        self._known: set[str] = set()
        self._fetching: dict[str, Any] = {}
        self._unmet_since: float | None = None
        self._check_all_workers(has_asking=asking is not None)
        self._running: dict[Any, _Running] = {}
        self._ended: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        self.window = 3 * slots

    def _send_parcel(self) -> None:
        # Submitted, not scattered: what is lost with a worker can be sent again.
        key = f"parcel-{self._raw_parcel.token}-{self._count}"
        self._parcel = self._client.submit(_same, self._raw_parcel, key=key)

    def _check_all_workers(self, *, has_asking: bool) -> None:
        from distributed import wait

        workers = self._client.sync(self._client.scheduler.identity)["workers"]
        if has_asking:
            self._asking.settle(read_offers(workers).values())
        self._fetch(list(workers)[:64])
        checks = list(self._fetching.values())
        with suppress(TimeoutError, CancelledError):
            wait(checks, timeout=CHECK_SECONDS)
        self._lookout.check_connection()
        for check in checks:
            if check.status == "error":
                raise _translate(check.exception())

    def _fetch(self, addresses: Iterable[str]) -> None:
        """Let workers fetch the parcel: tasks go where it is."""
        for address in addresses:
            self._known.add(address)
            self._fetching[address] = self._client.submit(
                check_parcel, self._parcel, workers=[address], key=f"check-{self._key}-{address}"
            )

    def submit(self, batch: Batch) -> None:
        """Hand in some units."""
        asked = self._asking.of(batch)
        future = self._client.submit(
            perform_parcel,
            self._parcel,
            batch,
            self._work.narrowed(batch.units),
            key=(self._key, self._count),
            retries=0,
            resources=asked or None,
        )
        self._count += 1
        self._running[future.key] = _Running(batch, asked, future)
        self._client.loop.add_callback(self._follow, future)

    async def _follow(self, future: Any) -> None:
        # Not Dask's as_completed: that forgets a task whose worker is lost just before its
        # answer is fetched, if it is then done again and fails.
        try:
            (answer,) = await self._client.gather([future], asynchronous=True)
        except BaseException as error:
            answer = _Failure(error)
        self._ended.put((future.key, answer))

    def collect(self) -> list[Outcome]:
        """Wait for the next batches to end."""
        outcomes: list[Outcome] = []
        for key, answer in self._wait():
            running = self._running.pop(key, None)
            if running is None:
                continue  # handed in again meanwhile
            if isinstance(answer, _Failure):
                outcomes.append(self._explain(running.batch, answer.error))
            else:
                outcomes.append((running.batch, answer))
                self._recycle(answer)
        return outcomes

    def _wait(self) -> list[tuple[Any, Any]]:
        """Return what has ended; look meanwhile whether anybody is there to do the rest."""
        while True:
            if self._lookout.is_due:
                self._look()
            with suppress(Empty):
                return [self._ended.get(timeout=LOOK_SECONDS), *self._take()]

    def _take(self) -> Iterator[tuple[Any, Any]]:
        with suppress(Empty):
            while True:
                yield self._ended.get_nowait()

    def _look(self) -> None:
        """See who is there, and put right what nobody could do."""
        workers = self._lookout.list_workers()
        if workers is None:
            return
        if not workers:
            self._lookout.wait_for("workers")
            return
        is_unmet = self._unmet_since is not None
        if workers != self._known or is_unmet:
            self._meet_workers()
        if self._unmet_since is None:
            self._lookout.stop_waiting()

    def _meet_workers(self) -> None:
        """Take note of workers that came or went."""
        workers = self._lookout.describe_workers()
        if workers is None:
            return
        for address in self._fetching.keys() - workers.keys():
            del self._fetching[address]
        self._known &= workers.keys()
        self._fetch(workers.keys() - self._known)
        self._asking.meet(read_offers(workers).values())
        unmet = [one for one in self._running.values() if not self._asking.is_met(one.asked)]
        now = time.monotonic()
        if not self._asking.is_met(self._asking.fixed):
            # That cannot be made smaller.
            self._unmet_since = now
            self._lookout.wait_for(self._asking.describe_wanted())
        elif not unmet:
            self._unmet_since = None
        elif self._unmet_since is None:
            self._unmet_since = now
        elif now - self._unmet_since > GRACE_SECONDS:
            # Nobody offers so much any more: less has to do.
            self._asking.settle(read_offers(workers).values(), needs_all=False)
            self._hand_in_again(unmet)
            self._unmet_since = None

    def _hand_in_again(self, some: Iterable["_Running"]) -> None:
        for one in some:
            del self._running[one.future.key]
            one.future.cancel(force=True)
            self.submit(one.batch)

    def _recycle(self, report: TaskReport) -> None:
        """Replace a worker that has less and less room: something in it leaks."""
        if not self._recycle_bytes or report.resident_bytes <= self._recycle_bytes:
            return
        pid = int(report.worker.partition("/")[0])
        if pid in self._recycled:
            return
        self._recycled.add(pid)
        # It says goodbye to the scheduler, which gives what it has in hand to others.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        if self._on_recycle is not None:
            self._on_recycle(report)

    def _explain(self, batch: Batch, error: BaseException) -> Setback:
        """Return what went wrong with a batch: its own error, or a worker that was lost."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        lost = (KilledWorker, FutureCancelledError, CancelledError)
        if isinstance(error, lost):
            self._lookout.check_connection()
            if self._parcel.status in ("cancelled", "lost", "error"):
                self._send_parcel()
            return Setback(batch, error, is_loss=True)
        return Setback(batch, _translate(error))

    def stop(self) -> None:
        """Drop what has not begun and wait for what has."""
        futures = [one.future for one in self._running.values()]
        self._running.clear()
        if self._client.status == "running":
            self._client.cancel(futures, force=True)
            self._fetching.clear()
            self._parcel.release()


class _Running(NamedTuple):
    """A batch on its way."""

    batch: Batch
    asked: Asked
    future: Any


class _Failure(NamedTuple):
    error: BaseException


def _same(parcel: Any) -> Any:
    return parcel


def _translate(error: BaseException) -> BaseException:
    """Return the error a user should see instead of one of Dask's own."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return ClusterError(
            "Workers died again and again before they could begin. They may have too little "
            "memory to open your data or to import what your function needs."
        )
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "barrow":
        return TravelError(
            "The workers cannot import barrow. Install it in the environment they run in."
        )
    return error
