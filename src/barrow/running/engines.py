"""Three engines with one face: in line, threads of this process, a Dask client.

An engine takes batches of units and gives back reports in the order in which
they end. It decides nothing.
"""

from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

from barrow.errors import ClusterError, TravelError
from barrow.running.backlog import Batch
from barrow.running.parcel import check_parcel, pack, perform_parcel
from barrow.running.task import TaskReport, Work, perform


class Engine(Protocol):
    """Runs batches of units."""

    window: int
    """How many batches to hand in ahead."""
    batch_seconds: float
    """How long a batch should last so that handing it in costs little."""

    def submit(self, batch: Batch) -> None:
        """Hand in some units."""

    def collect(self) -> list[TaskReport]:
        """Wait until something ends and return it; an error is raised."""

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

    def collect(self) -> list[TaskReport]:
        """Run the oldest batch."""
        return [perform(self._work, self._waiting.popleft())]

    def stop(self) -> None:
        """Drop what has not begun."""
        self._waiting.clear()


class ThreadEngine:
    """Runs batches in threads of this process."""

    batch_seconds = 0.02

    def __init__(self, work: Work, threads: int) -> None:
        self._work = work
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="barrow")
        self._futures: set[Future[TaskReport]] = set()
        self.window = 2 * threads

    def submit(self, batch: Batch) -> None:
        """Hand in some units."""
        self._futures.add(self._pool.submit(perform, self._work, batch))

    def collect(self) -> list[TaskReport]:
        """Wait for the next batches to end."""
        done, self._futures = wait(self._futures, return_when=FIRST_COMPLETED)
        return [future.result() for future in done]

    def stop(self) -> None:
        """Drop what has not begun and wait for what has."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class DaskEngine:
    """Runs batches on the workers of any Dask client."""

    batch_seconds = 0.1

    def __init__(self, work: Work, client: Any, slots: int, name: str) -> None:
        from distributed import as_completed

        self._client = client
        self._name = name
        # What is heavy stays here and is handed out block by block.
        self._work = work
        parcel = pack(work.light(), name)
        self._key = f"{name}-{parcel.token}"
        # Submitted, not scattered: what is lost with a worker can be sent again.
        self._parcel = client.submit(_same, parcel, key=f"parcel-{parcel.token}")
        self._check_all_workers()
        self._running: Any = as_completed(loop=client.loop, with_results=True, raise_errors=False)
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
                raise _explain(error, self._name)

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
        self._running.add(future)

    def collect(self) -> list[TaskReport]:
        """Wait for the next batches to end."""
        reports = []
        for future, answer in self._running.next_batch(block=True):
            if future.status != "finished":
                error = answer[1] if isinstance(answer, tuple) else future.exception()
                raise _explain(error, self._name)
            reports.append(answer)
        return reports

    def stop(self) -> None:
        """Drop what has not begun and wait for what has."""
        self._client.cancel(list(self._running.futures), force=True)
        self._running.clear()
        self._parcel.release()


def _same(parcel: Any) -> Any:
    return parcel


def _explain(error: BaseException, name: str) -> BaseException:
    """Return the error a user should see instead of one of Dask's own."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return ClusterError(
            f"Workers died again and again while running '{name}'. A task may need more memory "
            "than a worker has: use workers with more memory, or a smaller memory= for this run."
        )
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "barrow":
        return TravelError(
            "The workers cannot import barrow. Install it in the environment they run in."
        )
    return error
