"""Three engines with one face: in line, threads of this process, a Dask client.

An engine takes batches of units and gives back reports in the order in which
they end. It decides nothing.
"""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from barrow.errors import ClusterError, TravelError
from barrow.running.backlog import Batch
from barrow.running.fence import FENCE
from barrow.running.interrupts import interruptible
from barrow.running.parcel import check_parcel, pack, perform_parcel
from barrow.running.task import TaskReport, Work, perform

NEWS_SECONDS = 0.05
"""Results that are on their way come within this time of each other."""


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

    def stop(self, patience_seconds: float | None = None) -> list[Outcome]:
        """Drop what has not begun, and wait for what has, where that can be waited for.

        Parameters
        ----------
        patience_seconds
            How long to wait at most; what lasts longer is given up.

        Returns
        -------
        list
            What has ended meanwhile.
        """


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
            with interruptible():
                report = perform(self._work, batch)
        except Exception as error:
            return [Setback(batch, error)]
        return [(batch, report)]

    def stop(self, patience_seconds: float | None = None) -> list[Outcome]:  # noqa: ARG002
        """Drop what has not begun."""
        self._waiting.clear()
        return []


class ThreadEngine:
    """Runs batches in threads of this process.

    No thread can be ended from outside. These ones are daemons, which a process does not
    wait for at its end, unlike those of ``concurrent.futures``: a run that is interrupted
    gives them up in the middle of a chunk. What they still compute is not written any more,
    see :class:`~barrow.running.sinks.ZarrSink`.
    """

    batch_seconds = 0.02

    def __init__(self, work: Work, threads: int) -> None:
        self._work = work
        self._threads = threads
        self.window = 2 * threads
        self._n_started = 0
        self._waiting: deque[Batch] = deque()
        self._ended: deque[Outcome] = deque()
        self._busy = 0
        self._is_stopped = False
        self._lock = threading.Lock()
        self._has_work = threading.Condition(self._lock)
        self._has_news = threading.Condition(self._lock)

    def submit(self, batch: Batch) -> None:
        """Hand in some units."""
        with self._lock:
            self._waiting.append(batch)
            self._has_work.notify()
        if self._n_started < self._threads:
            name = f"barrow_{self._n_started}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
            self._n_started += 1

    def collect(self) -> list[Outcome]:
        """Wait for the next batches to end."""
        with interruptible(), self._has_news:
            self._has_news.wait_for(lambda: self._ended)
        return self._take_ended()

    def stop(self, patience_seconds: float | None = None) -> list[Outcome]:
        """Drop what has not begun and wait for what has."""
        with self._lock:
            self._waiting.clear()
            self._is_stopped = True
            self._has_work.notify_all()
            if not self._has_news.wait_for(lambda: not self._busy, patience_seconds):
                FENCE.lift()
        return self._take_ended()

    def _take_ended(self) -> list[Outcome]:
        with self._lock:
            ended = list(self._ended)
            self._ended.clear()
        return ended

    def _serve(self) -> None:
        """Do one batch after the other."""
        while True:
            with self._lock:
                self._has_work.wait_for(lambda: self._waiting or self._is_stopped)
                if self._is_stopped:
                    return
                batch = self._waiting.popleft()
                self._busy += 1
            outcome: Outcome
            try:
                outcome = batch, perform(self._work, batch)
            except BaseException as error:
                outcome = Setback(batch, error)
            with self._lock:
                self._busy -= 1
                self._ended.append(outcome)
                self._has_news.notify_all()
            del outcome  # it may hold a large part of a reduction


class DaskEngine:
    """Runs batches on the workers of any Dask client."""

    batch_seconds = 0.1

    def __init__(
        self,
        work: Work,
        client: Any,
        slots: int,
        name: str,
        *,
        recycle_bytes: int = 0,
        on_recycle: Callable[[TaskReport], None] | None = None,
    ) -> None:
        from distributed import as_completed

        self._client = client
        self._name = name
        # A worker that holds more than this after a task is replaced by a fresh one.
        self._recycle_bytes = recycle_bytes
        self._on_recycle = on_recycle
        self._recycled: set[int] = set()
        # What is heavy stays here and is handed out block by block.
        self._work = work
        parcel = pack(work.light(), name)
        self._key = f"{name}-{parcel.token}"
        # Submitted, not scattered: what is lost with a worker can be sent again.
        self._parcel = client.submit(_same, parcel, key=f"parcel-{parcel.token}")
        self._check_all_workers()
        self._running: Any = as_completed(loop=client.loop, with_results=True, raise_errors=False)
        self._batches: dict[Any, Batch] = {}
        self._count = 0
        self.window = 3 * slots

    def _check_all_workers(self) -> None:
        addresses = list(self._client.sync(self._client.scheduler.identity)["workers"])[:64]
        checks = [
            self._client.submit(
                check_parcel, self._parcel, workers=[address], key=f"check-{self._key}-{index}"
            )
            for index, address in enumerate(addresses)
        ]
        for check in checks:
            if (error := check.exception()) is not None:
                raise _translate(error)

    def submit(self, batch: Batch) -> None:
        """Hand in some units."""
        future = self._client.submit(
            perform_parcel,
            self._parcel,
            batch,
            self._work.narrowed(batch.units),
            key=(self._key, self._count),
            retries=0,
        )
        self._count += 1
        self._batches[future.key] = batch
        self._running.add(future)

    def collect(self) -> list[Outcome]:
        """Wait for the next batches to end."""
        outcomes: list[Outcome] = []
        with interruptible():
            ended = self._running.next_batch(block=True)
        for future, answer in ended:
            batch = self._batches.pop(future.key)
            if future.status == "finished":
                outcomes.append((batch, answer))
                self._recycle(answer)
            else:
                outcomes.append(self._explain(batch, future, answer))
        return outcomes

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

    def _explain(self, batch: Batch, future: Any, answer: Any) -> Setback:
        """Return what went wrong with a batch: its own error, or a worker that was lost."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        error = answer[1] if isinstance(answer, tuple) else future.exception()
        lost = (KilledWorker, FutureCancelledError, CancelledError)
        if isinstance(error, lost) and self._client.status == "running":
            return Setback(batch, error, is_loss=True)
        return Setback(batch, _translate(error))

    def stop(self, patience_seconds: float | None = None) -> list[Outcome]:
        """Drop what has not begun; a worker cannot be told to stop what has."""
        ended = self._running.next_batch(block=False)
        if patience_seconds is not None:
            ended += self._wait_for_news(patience_seconds)
        self._client.cancel(list(self._running.futures), force=True)
        self._running.clear()
        self._parcel.release()
        return [
            (self._batches.pop(future.key), answer)
            for future, answer in ended
            if future.status == "finished"
        ]

    def _wait_for_news(self, patience_seconds: float) -> list[Any]:
        """Return what ends now, or has ended and is on its way here."""
        found: list[Any] = []
        began = last = time.monotonic()
        while self._batches and (now := time.monotonic()) - began < patience_seconds:
            if news := self._running.next_batch(block=False):
                found += news
                last = now
            elif now - last > NEWS_SECONDS:
                break
            time.sleep(NEWS_SECONDS / 10)
        return found


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
