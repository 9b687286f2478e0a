"""The engine on the workers of any Dask client.

It tells apart what a task raised from a worker that was lost with it, looks from time
to time whether anybody is there to do the work, and decides nothing else.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from barrow.errors import ClusterError, TravelError
from barrow.running.asking import Asked, Asking, read_offers
from barrow.running.backlog import Batch
from barrow.running.engines import Outcome, Setback
from barrow.running.interrupts import interruptible
from barrow.running.lookout import LOOK_SECONDS, Lookout
from barrow.running.parcel import check_parcel, pack, perform_parcel
from barrow.running.task import TaskReport, Work
from barrow.running.unsticking import Unsticking

# Results that are on their way come within this time of each other.
NEWS_SECONDS = 0.05
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
    unsticking
        Frees those that are paused for ever.
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
        unsticking: Unsticking | None = None,
    ) -> None:
        self._client = client
        self._name = name
        # A worker that holds more than this after a task is replaced by a fresh one.
        self._recycle_bytes = recycle_bytes
        self._on_recycle = on_recycle
        self._recycled: set[int] = set()
        self._unsticking = unsticking
        # What is heavy stays here and is handed out block by block.
        self._work = work
        self._packed = pack(work.light(), name)
        self._key = key or f"{name}-{self._packed.token}"
        self._asking = asking or Asking(work.budget_bytes, slots)
        self._lookout = lookout or Lookout(client)
        self._count = self._n_sent = 0
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
        key = f"parcel-{self._packed.token}-{self._n_sent}"
        self._parcel = self._client.submit(_same, self._packed, key=key)
        self._n_sent += 1

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
        errors = [check.exception() for check in checks if check.status == "error"]
        for error in errors:
            # A worker that dies now is replaced; if the work itself kills, its chunks will show.
            if not _is_loss(error):
                raise _translate(error)
        self._mend_parcel()

    def _mend_parcel(self) -> None:
        """Send the parcel again if it went down with a worker that was just unpacking it."""
        if self._parcel.status in ("cancelled", "lost", "error"):
            self._send_parcel()

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
                with interruptible():
                    first = self._ended.get(timeout=LOOK_SECONDS)
                if self._unsticking is not None:
                    self._unsticking.note_progress()
                return [first, *self._take()]

    def _take(self) -> list[tuple[Any, Any]]:
        """Return what has ended and was not asked for yet."""
        found = []
        with suppress(Empty):
            while True:
                found.append(self._ended.get_nowait())
        return found

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
        if self._unsticking is not None and self._unsticking.is_due:
            self._unsticking.see(self._lookout.describe_workers() or {})

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
        if _is_loss(error):
            self._lookout.check_connection()
            self._mend_parcel()
            return Setback(batch, error, is_loss=True)
        return Setback(batch, _translate(error))

    def stop(self, patience_seconds: float | None = None) -> list[Outcome]:
        """Drop what has not begun; a worker cannot be told to stop what has."""
        ended = self._take()
        if patience_seconds is not None:
            ended += self._wait_for_news(patience_seconds - NEWS_SECONDS)
        done: list[Outcome] = [
            (self._running.pop(key).batch, answer)
            for key, answer in ended
            if key in self._running and not isinstance(answer, _Failure)
        ]
        futures = [one.future for one in self._running.values()]
        self._running.clear()
        if self._client.status == "running":
            self._client.cancel(futures, force=True)
            self._fetching.clear()
            self._parcel.release()
        return done

    def _wait_for_news(self, patience_seconds: float) -> list[tuple[Any, Any]]:
        """Return what ends now, or has ended and is on its way here."""
        found: list[tuple[Any, Any]] = []
        last = time.monotonic() + patience_seconds
        with suppress(Empty):
            while len(found) < len(self._running) and time.monotonic() < last:
                found.append(self._ended.get(timeout=NEWS_SECONDS))
        return found


class _Running(NamedTuple):
    """A batch on its way."""

    batch: Batch
    asked: Asked
    future: Any


class _Failure(NamedTuple):
    """How a batch ended that has no report."""

    error: BaseException


def _is_loss(error: BaseException) -> bool:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    return isinstance(error, (KilledWorker, FutureCancelledError, CancelledError))


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
