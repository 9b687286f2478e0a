"""The engine room: hand chunks to an engine through a rolling window.

A million chunks are never listed, submitted or remembered at once: as some end,
the next are handed in, several at a time when they are short.
"""

from collections.abc import Callable, Iterator
from typing import Any

from barrow.running.engines import Engine
from barrow.running.fold import Fold
from barrow.running.task import TaskReport, batches

LARGEST_BATCH = 4096
# The end of a run is shared out evenly: the last batches are small.
BATCHES_LEFT_PER_SLOT = 4


def run_chunks(
    engine: Engine,
    numbers: Iterator[int],
    *,
    total: int,
    slots: int,
    chunk_seconds: float,
    on_report: Callable[[TaskReport], None],
    combine: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """Run the chunks of these numbers and return the total of a reduction.

    Parameters
    ----------
    numbers
        The chunks still to do.
    total
        How many these are.
    slots
        Tasks that run at once.
    chunk_seconds
        Predicted for one chunk; corrected as reports come in. 0 if not known.
    on_report
        Called with each report, in the order in which they come.
    """
    fold = Fold(combine) if combine is not None else None
    pace = _Pace(chunk_seconds)
    left, in_flight = total, 0
    try:
        while left or in_flight:
            while left and in_flight < engine.window:
                size = choose_batch(pace.seconds, engine.batch_seconds, left, slots)
                batch = batches(numbers, size)
                engine.submit(batch)
                left -= len(batch)
                in_flight += 1
            for report in engine.collect():
                in_flight -= 1
                pace.learn(report)
                if fold is not None:
                    fold.extend(report.parts)
                on_report(report)
    finally:
        engine.stop()
    return fold.result() if fold is not None else None


def choose_batch(chunk_seconds: float, batch_seconds: float, left: int, slots: int) -> int:
    """Return how many chunks travel together.

    Examples
    --------
    >>> choose_batch(0.001, batch_seconds=0.1, left=10_000, slots=2)
    100
    >>> choose_batch(0.001, batch_seconds=0.1, left=40, slots=2)
    5
    >>> choose_batch(3.0, batch_seconds=0.1, left=10_000, slots=2)
    1
    """
    if chunk_seconds <= 0:
        return 1
    wanted = int(batch_seconds / chunk_seconds)
    fair = left // (BATCHES_LEFT_PER_SLOT * slots)
    return max(1, min(wanted, fair, LARGEST_BATCH))


class _Pace:
    """How long a chunk takes, learnt from the last ones."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def learn(self, report: TaskReport) -> None:
        spent = sum(c.read_seconds + c.compute_seconds + c.write_seconds for c in report.chunks)
        seen = spent / max(1, len(report.chunks))
        self.seconds = seen if self.seconds <= 0 else 0.7 * self.seconds + 0.3 * seen
