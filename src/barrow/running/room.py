"""The engine room: hand a backlog to an engine through a rolling window.

A million chunks are never listed, submitted or remembered at once: as some end,
the next are handed in, several at a time when they are short.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from barrow.running.backlog import Backlog, Batch
from barrow.running.engines import Engine, Setback
from barrow.running.fold import Fold
from barrow.running.task import TaskReport

LARGEST_BATCH = 4096
# An interrupted run waits so long for chunks that are about to end.
GRACE_SECONDS = 0.5
# The end of a run is shared out evenly: the last batches are small.
BATCHES_LEFT_PER_SLOT = 4


class Gate(Protocol):
    """May close, and then nothing more is handed out until it opens."""

    is_open: bool

    def wait(self) -> None:
        """Return when it is open; raise an error if that takes too long."""


def run_chunks(
    engine: Engine,
    backlog: Backlog,
    *,
    slots: int,
    chunk_seconds: float,
    on_report: Callable[[Batch, TaskReport], None],
    on_setback: Callable[[Setback], None],
    combine: Callable[[Any, Any], Any] | None = None,
    gate: Gate | None = None,
) -> Any:
    """Run the chunks of a backlog and return the total of a reduction.

    Parameters
    ----------
    backlog
        The chunks still to do. Whoever takes the reports may cut it anew: what is
        handed out later follows.
    slots
        Tasks that run at once.
    chunk_seconds
        Predicted for one chunk; corrected as reports come in. 0 if not known.
    on_report
        Called with each batch and its report, in the order in which they come.
    on_setback
        Called with each batch that was not done: puts it back into the backlog, or raises.
    gate
        While it is closed, what runs is awaited and nothing new is begun.
    """
    fold = Fold(combine) if combine is not None else None
    pace = _Pace(chunk_seconds)
    in_flight = 0
    is_quiet = False
    patience: float | None = None
    try:
        while not backlog.is_empty or in_flight:
            if gate is not None and not gate.is_open and not in_flight:
                gate.wait()
            while not backlog.is_empty and in_flight < engine.window and not is_quiet:
                if gate is not None and not gate.is_open:
                    break
                if backlog.wants_quiet and in_flight:
                    break
                is_quiet = backlog.wants_quiet
                unit_seconds = pace.seconds * backlog.cells
                size = choose_batch(unit_seconds, engine.batch_seconds, backlog.units_left, slots)
                engine.submit(backlog.take(size))
                in_flight += 1
            for outcome in engine.collect():
                in_flight -= 1
                is_quiet = False
                if isinstance(outcome, Setback):
                    on_setback(outcome)
                    continue
                batch, report = outcome
                pace.learn(report)
                if fold is not None:
                    fold.extend(report.parts)
                if report.left:
                    backlog.put_back(replace(batch, units=report.left, attempts=1))
                on_report(batch, report)
    except (KeyboardInterrupt, SystemExit):
        patience = GRACE_SECONDS
        raise
    finally:
        for outcome in engine.stop(patience):
            # The run has failed, but what was done is worth being noted.
            if not isinstance(outcome, Setback):
                on_report(*outcome)
    return fold.result() if fold is not None else None


def choose_batch(unit_seconds: float, batch_seconds: float, left: int, slots: int) -> int:
    """Return how many units travel together.

    Examples
    --------
    >>> choose_batch(0.001, batch_seconds=0.1, left=10_000, slots=2)
    100
    >>> choose_batch(0.001, batch_seconds=0.1, left=40, slots=2)
    5
    >>> choose_batch(3.0, batch_seconds=0.1, left=10_000, slots=2)
    1
    """
    if unit_seconds <= 0:
        return 1
    wanted = int(batch_seconds / unit_seconds)
    fair = left // (BATCHES_LEFT_PER_SLOT * slots)
    return max(1, min(wanted, fair, LARGEST_BATCH))


class _Pace:
    """How long a chunk takes, learnt from the last ones."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def learn(self, report: TaskReport) -> None:
        if not report.chunks:
            return
        spent = sum(c.read_seconds + c.compute_seconds + c.write_seconds for c in report.chunks)
        seen = spent / max(1, report.n_cells)
        self.seconds = seen if self.seconds <= 0 else 0.7 * self.seconds + 0.3 * seen
