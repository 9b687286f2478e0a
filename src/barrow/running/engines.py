"""Engines with one face: in line, and threads of this process.

An engine takes batches of units and gives back reports in the order in which
they end. It decides nothing. The third is in :mod:`barrow.running.dask_engine`.
"""

import threading
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from barrow.pinning import limit_library_threads
from barrow.running.backlog import Batch
from barrow.running.fence import FENCE
from barrow.running.interrupts import interruptible
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
        limit_library_threads(self._work.library_threads or 1)
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
