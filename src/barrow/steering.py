"""Steer a run: what its chunks report is noted, learnt from, and put right."""

from barrow.errors import BudgetError
from barrow.model.plan import Plan
from barrow.model.source import Source
from barrow.planning.learning import Learner
from barrow.recording.record import RecordWriter
from barrow.running.backlog import Backlog, Batch
from barrow.running.engines import Setback
from barrow.running.progress import Progress
from barrow.running.recovery import Recovery
from barrow.running.task import TaskReport
from barrow.units import format_bytes


class Course:
    """What happens while the chunks of a run are done: noted, learnt from, put right."""

    def __init__(
        self,
        plan: Plan,
        target: Source,
        backlog: Backlog,
        record: RecordWriter,
        progress: Progress,
    ) -> None:
        self._backlog = backlog
        self._record = record
        self._progress = progress
        # The total of a reduction depends on its chunks, so these stay as planned.
        is_learning = plan.result != "value" and plan.options.get("may_resize", True)
        self._learner = Learner(plan) if is_learning else None
        self._recovery = Recovery(
            plan.name,
            plan.grid,
            plan.cuttable,
            target.grain,
            plan.budget_bytes,
            whole_bytes=plan.budget_bytes * plan.threads,
        )
        self._resized = self._recycled = 0

    def on_report(self, batch: Batch, report: TaskReport) -> None:
        """Note what was done."""
        self._record.note_chunks(report.worker, report.resident_bytes, report.chunks)
        self._progress.update(report)
        message = self._recovery.on_done(batch, report.n_cells, self._backlog)
        if message is not None:
            self._record.note_event("split", message, {"parts": dict(batch.parts)})
        if self._learner is not None and not batch.parts:
            self._learner.see(report.chunks)
            self._resize(self._learner)

    def on_setback(self, setback: Setback) -> None:
        """Put a batch back that was not done, or end the run."""
        batch, error = setback.batch, setback.error
        if setback.is_loss:
            kind, message = "lost", self._recovery.on_loss(batch, self._backlog)
        elif isinstance(error, MemoryError) and not isinstance(error, BudgetError):
            # What was thought of its memory was wrong, so nothing is made larger any more.
            self._learner = None
            kind, message = "split", self._recovery.on_memory(batch, self._backlog)
        else:
            raise error
        details = {"units": [[unit.start, unit.stop] for unit in batch.units]}
        self._record.note_event(kind, message, {**details, "error": repr(error)})

    def on_recycle(self, report: TaskReport) -> None:
        """Note that a worker was replaced."""
        self._recycled += 1
        held = format_bytes(report.resident_bytes)
        message = (
            f"Process {report.worker.partition('/')[0]} held {held} after its task: something in "
            "it leaks. It was replaced by a fresh one."
        )
        details = {"worker": report.worker, "resident_bytes": report.resident_bytes}
        self._record.note_event("recycled", message, details)

    def on_wait(self, message: str) -> None:
        """Say that there is nobody to do the work."""
        self._progress.tell(message)
        self._record.note_event("waiting", message, {})

    def counts(self) -> dict[str, int]:
        """Return how often something happened."""
        return {
            "resized": self._resized,
            "split": self._recovery.n_split,
            "lost": self._recovery.n_lost,
            "recycled": self._recycled,
        }

    def _resize(self, learner: Learner) -> None:
        """Cut what is left another way, if what was learnt says so."""
        change = learner.propose(cells_left=self._backlog.left, first=self._backlog.first)
        if change is not None:
            self._backlog.cut(change.cut.cells, change.cut.strides)
            self._record.note_event("resized", change.message, change.details())
            self._resized += 1
