"""Steer a run: what its chunks report is noted, learnt from, and put right."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from barrow.errors import BarrowError, BudgetError, OutputError, StepError
from barrow.model.plan import Plan
from barrow.model.skipped import Skipped
from barrow.model.source import Source
from barrow.planning.learning import Learner
from barrow.recording.record import RecordWriter
from barrow.running.backlog import Backlog, Batch
from barrow.running.engines import Setback
from barrow.running.fence import find_asked
from barrow.running.progress import Progress
from barrow.running.recovery import Recovery
from barrow.running.sinks import WriteError
from barrow.running.task import TaskReport
from barrow.running.watch import Watch
from barrow.units import format_bytes, format_count

# Of an error that is as long as the data it complains about.
LONGEST_REASON = 500


class Course:
    """What happens while the chunks of a run are done.

    Parameters
    ----------
    blank
        Called with a chunk that is skipped: puts something into its place.
    watch
        The disk, if the result is stored.
    """

    def __init__(
        self,
        plan: Plan,
        target: Source,
        backlog: Backlog,
        record: RecordWriter,
        progress: Progress,
        blank: Callable[[range], None],
        watch: Watch | None = None,
    ) -> None:
        self._name = plan.name
        self._may_skip = plan.options.get("on_error") == "skip"
        self.backlog = backlog
        self.watch = watch
        self._record = record
        self._progress = progress
        self._blank = blank
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
        self._planned_seconds = plan.task_seconds
        self._n_left, self._n_done, self._spent_seconds = backlog.left, 0, 0.0
        self._last_seconds = time.monotonic()
        self._staff: dict[str, int] = {}
        self._resized = self._recycled = 0
        self._skipped: list[Skipped] = []
        self.first_error: Exception | None = None
        """What the first chunk raised that was skipped."""

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """The chunks that were left out, in their order."""
        return tuple(sorted(self._skipped, key=lambda left_out: left_out.chunk))

    def on_report(self, batch: Batch, report: TaskReport) -> None:
        """Note what was done."""
        try:
            self._record.note_chunks(report.worker, report.resident_bytes, report.chunks)
        except OutputError:
            if self.watch is not None:
                self.watch.check_presence()  # that would say more
            raise
        self._progress.update(report)
        self._last_seconds = time.monotonic()
        self._n_left -= report.n_cells
        self._n_done += report.n_cells
        self._spent_seconds += sum(
            c.read_seconds + c.compute_seconds + c.write_seconds for c in report.chunks
        )
        if self.watch is not None:
            self.watch.see(report)
            if self._record.trouble:
                self.watch.close(f"the record cannot be written: {self._record.trouble}")
        message = self._recovery.on_done(batch, report.n_cells, self.backlog)
        if message is not None:
            self._record.note_event("split", message, {"parts": dict(batch.parts)})
        if self._learner is not None and not batch.parts:
            self._learner.see(report.chunks)
            self._resize(self._learner)

    def on_setback(self, setback: Setback) -> None:
        """Put a batch back that was not done, skip what cannot be, or end the run."""
        batch, error = setback.batch, setback.error
        try:
            kind, message = self._put_right(setback)
        except Exception as failure:
            if not self._may_skip or not (setback.is_loss or is_of_chunk(failure)):
                raise
            kind, message = "skipped", self._skip(batch, failure)
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

    @property
    def left(self) -> tuple[int, float]:
        """Chunks that are not done yet, and how long one takes, as far as that is known."""
        usual = self._spent_seconds / self._n_done if self._n_done else self._planned_seconds
        # If nothing has ended for a while, chunks take at least that long.
        return self._n_left, max(usual, time.monotonic() - self._last_seconds)

    def on_workers(self, there: int, asked: int | None) -> None:
        """Note how many workers there are, and how many were asked for, when that changes."""
        staff = {"there": there} if asked is None else {"there": there, "asked": asked}
        is_first, is_same = not self._staff, staff == self._staff
        self._staff = staff
        if is_same or (is_first and asked is None):
            return
        message = f"{format_count(there, 'worker')} at work"
        wanted = "" if asked is None else f", {asked} asked for"
        self._record.note_event("workers", f"{message}{wanted}.", staff)

    def on_wait(self, message: str) -> None:
        """Say that there is nobody to do the work."""
        self._progress.say(message)
        self._record.note_event("waiting", message, {})

    def on_jobs(self, news: Iterable[str]) -> None:
        """Note what a queue has done to the jobs in which the work is done."""
        with suppress(OutputError):  # the run itself will meet it, and say so
            for message in news:
                self._record.note_event("job", message, {})

    def on_stuck(self, message: str, numbers: Mapping[str, Any]) -> None:
        """Say that a worker is paused for ever, and what is done about it."""
        self._progress.say(message)
        self._record.note_event("stuck", message, numbers)

    def counts(self) -> dict[str, int]:
        """Return how often something happened."""
        return {
            "resized": self._resized,
            "split": self._recovery.n_split,
            "lost": self._recovery.n_lost,
            "recycled": self._recycled,
            "skipped": len(self._skipped),
            "paused": self.watch.n_paused if self.watch is not None else 0,
        }

    def _put_right(self, setback: Setback) -> tuple[str, str]:
        """Put a batch back if that can help; return what was done, in a word and in words."""
        batch, error = setback.batch, setback.error
        if setback.is_loss:
            return "lost", self._recovery.on_loss(batch, self.backlog)
        if isinstance(error, MemoryError) and not isinstance(error, BudgetError):
            # What was thought of its memory was wrong, so nothing is made larger any more.
            self._learner = None
            return "split", self._recovery.on_memory(batch, self.backlog, find_asked(error))
        raise error

    def _skip(self, batch: Batch, error: Exception) -> str:
        """Leave the first chunk of a batch out; say it in words."""
        unit = batch.units[0]
        if len(unit) > 1:
            # One of several chunks in one call: each is tried by itself.
            self._recovery.take_apart(batch, self.backlog)
            return f"{self._recovery.name_unit(unit)} failed together: they are done one by one."
        try:
            self._blank(unit)
        except WriteError as unwritten:
            self.backlog.put_back(batch)
            if self.watch is not None:
                self.watch.on_trouble(unwritten.trouble)
            return f"{self._recovery.name_unit(unit)} cannot be skipped now: no room for a gap."
        self._recovery.drop_first(batch, self.backlog)
        self.first_error = self.first_error or error
        left_out = Skipped(
            self._name,
            unit.start,
            self.backlog.grid.ranges(unit.start),
            explain(error),
            batch.attempts + 1,
        )
        self._skipped.append(left_out)
        self._record.note_skipped(left_out)
        self._progress.skip()
        self._n_left -= 1
        return f"Skipped: {left_out}"

    def _resize(self, learner: Learner) -> None:
        """Cut what is left another way, if what was learnt says so."""
        change = learner.propose(cells_left=self.backlog.left, first=self.backlog.first)
        if change is not None:
            self.backlog.cut(change.cut.cells, change.cut.strides)
            self._record.note_event("resized", change.message, change.details())
            self._resized += 1


def is_of_chunk(error: Exception) -> bool:
    """Tell whether an error is about one chunk rather than the run as a whole."""
    return isinstance(error, (BudgetError, StepError)) or not isinstance(error, BarrowError)


def explain(error: Exception) -> str:
    """Return an error in one line, with what the function was called with.

    Examples
    --------
    >>> error = ValueError("no photons")
    >>> error.add_note("barrow: step 'denoise' was called with movie[0:10]")
    >>> explain(error)
    "ValueError: no photons (step 'denoise' was called with movie[0:10])"
    """
    text = f"{type(error).__name__}: {error}".strip().removesuffix(":").replace("\n", " ")
    if len(text) > LONGEST_REASON:
        text = f"{text[:LONGEST_REASON]} …"
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("barrow: ")]
    return f"{text} ({notes[0].removeprefix('barrow: ')})" if notes else text
