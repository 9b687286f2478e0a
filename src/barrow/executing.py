"""Carry a plan out: folder, record, sink, engine and progress around the engine room.

The one place where a plan becomes files, threads and workers.
"""

import json
import os
import time
import weakref
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from barrow.equipping import start_engine
from barrow.errors import OutputError
from barrow.explaining import diagnose, write_report, write_unasked
from barrow.leftovers import Leftover, adopt
from barrow.model.applied import Apply
from barrow.model.grid import Grid
from barrow.model.plan import Plan
from barrow.model.run import Run
from barrow.model.site import THREADS
from barrow.model.skipped import Skipped
from barrow.model.source import Source
from barrow.planning.stored import choose_stored_chunks, divides
from barrow.presenting import open_stored, present, put_labels_of
from barrow.recording.environment import describe_environment
from barrow.recording.metrics import compare
from barrow.recording.opening import begin_record
from barrow.recording.own import OwnSampling, describe_run
from barrow.recording.own_metrics import join_stages, with_rates
from barrow.recording.record import RecordWriter
from barrow.recording.stages import take_over
from barrow.remembering import doubting, learn_from
from barrow.reusing import reuse
from barrow.running import folders, stores
from barrow.running.backlog import Backlog
from barrow.running.disk import write_whole
from barrow.running.engines import Engine
from barrow.running.folders import RunFolder
from barrow.running.interrupts import listening, shielded
from barrow.running.ledger import find_damaged
from barrow.running.progress import Progress
from barrow.running.room import run_chunks
from barrow.running.saved_call import Call
from barrow.running.sinks import MemorySink, SharedSink, Sink, ZarrSink, blank
from barrow.running.space import foresee, refuse
from barrow.running.task import Work
from barrow.running.watch import Watch
from barrow.shared import SharedArray
from barrow.steering import Course
from barrow.units import format_count


def execute(
    plan: Plan,
    cluster: Any,
    kept_target: Source | None = None,
    before: Run | None = None,
    call: Call | None = None,
) -> Run:
    """Run a plan to its end; ``cluster`` is a handle when its engine is Dask.

    Parameters
    ----------
    kept_target
        What the plan of the run keeps instead of its own target, so that it does not
        hold data that are soon gone.
    before
        The stage before: its record and the chunks it has left out go into those of this one.
    call
        What the plan was made for, if that is known already.
    """
    assert plan.target is not None
    to = plan.options.get("to")
    key, began = None, time.perf_counter()
    if to is None:
        call = None
        folder = folders.open_run_folder(plan.name, plan.options.get("folder"))
    else:
        if plan.result == "memory":  # the place was named after the plan was made
            plan = replace(plan, result="store", stored_chunks={})
        call = call or Call.of(plan)
        key = call.key if plan.options.get("resume", True) else None
        whole = folders.find_result(to)
        if whole is not None:
            return reuse(plan, whole, key)
        folder = folders.open_result_folder(to)
    try:
        if to is not None and (whole := folders.find_result(to)) is not None:
            folder.remove()  # another process has just finished it
            return reuse(plan, whole, key)
        found = Leftover() if to is None else adopt(plan, folder, key)
        execution = _Execution(found.settle(plan), folder, call, kept_target, before, found)
        with listening(), doubting(execution.target, key=plan.cost_key):
            return execution.carry_out(cluster)
    except BaseException:
        if folder.is_temporary or not folder.is_begun:
            folder.remove()  # nothing was begun that could be taken up again
        else:
            write_unasked(folder.root, time.perf_counter() - began, plan.n_chunks)
        folder.release()
        raise


def discard(run: Run) -> None:
    """Remove what a run has left on disk, unless it was given a place."""
    if run.plan.options.get("to") is None:
        RunFolder(run.folder, run.folder / "result.zarr").remove()


@dataclass
class _Execution:
    """One plan on its way: what it needs while it runs."""

    plan: Plan
    folder: RunFolder
    call: Call | None
    """What can be taken up again; None if the result has no place of its own."""
    kept_target: Source | None
    before: Run | None
    """The stage before, of a pipeline."""
    found: Leftover
    sink: Sink | None = None
    values: np.ndarray | None = None
    """The result, when it stays in memory."""
    skipped: tuple[Skipped, ...] = ()
    """Chunks without an answer, first those of earlier stages."""
    course: Course = field(init=False)
    """What happens on the way."""
    notes: list[str] = field(default_factory=list)
    """What somebody should read when the run begins."""

    @property
    def target(self) -> Source:
        assert self.plan.target is not None
        return self.plan.target

    def carry_out(self, cluster: Any) -> Run:
        began, cpu_began = time.perf_counter(), time.process_time()
        with ExitStack() as stack:
            record = self._open_record(stack)
            finished = self._find_finished(record)
            self._check_space(record, len(finished))
            self.sink = self._make_sink()
            progress = self._steer(record, finished)
            plan = self.plan
            work = Work(
                self.target,
                plan.grid,
                self.sink,
                plan.strides,
                plan.budget_bytes,
                int(plan.resources.get(THREADS, 0)),
            )
            engine = start_engine(plan, work, self.course, cluster, self.folder.root, stack)
            # From here on, what is in the folder is worth being taken up again.
            self._keep(self.folder.plan_path, self.plan.to_json())
            if self.call is not None:
                self.call.save(self.folder)
            self._keep(self.folder.key_path, (self.call and self.call.key) or "")
            record.describe({"plan": self.plan.to_json(), **describe_run()})
            record.describe(describe_environment())
            record.forget_skipped()
            if self.before is not None:
                take_over(record, self.before.folder / "record.sqlite")
                self.skipped = self.before.skipped
            for earlier in self.skipped:
                record.note_skipped(earlier)
            with OwnSampling(record) as sampling:
                value = self._run(engine, record, progress)
            totals = record.totals()
            wall = time.perf_counter() - began
            held = record.account(self.plan.slots, time.time() - wall, time.time())
            record.describe({"peak_bytes": sampling.peak_bytes})
            numbers = {
                **totals,
                **held,
                "peak_bytes": sampling.peak_bytes,
                "process_cpu_seconds": max(sampling.cpu_seconds, totals["cpu_seconds"]),
                "items": prod(self.plan.lengths.values()),
                "chunks_planned": self.plan.n_chunks,
                "chunks_found": len(finished),
                **self.course.counts(),
                "engine": self.plan.engine,
                "workers": self.plan.workers,
                "threads": self.plan.threads,
                "wall_seconds": wall,
                "client_cpu_seconds": time.process_time() - cpu_began,
            }
        metrics = with_rates(numbers)
        joined = metrics if self.before is None else join_stages([self.before.metrics, metrics])
        learn_from(self.plan, len(finished), totals)
        self._keep(self.folder.metrics_path, json.dumps(joined, indent=2))
        self.plan = replace(self.plan, measured=compare(self.plan, metrics))
        self._keep(self.folder.plan_path, self.plan.to_json())
        return self._finish(value, joined)

    @property
    def is_stored(self) -> bool:
        return self.plan.result == "store"

    def _keep(self, path: Path, text: str) -> None:
        """Write a small file; a result in memory is worth more than what is kept of its run."""
        try:
            write_whole(path, text + "\n")
        except OutputError:
            if self.is_stored:
                raise

    def _open_record(self, stack: ExitStack) -> RecordWriter:
        record, fault = begin_record(self.folder.record_path, may_leave_disk=not self.is_stored)
        stack.enter_context(record)
        for text in (self.found.fault, fault):
            if text:
                self._note(record, "damaged", text)
        return record

    def _note(self, record: RecordWriter, kind: str, message: str, **details: Any) -> None:
        record.note_event(kind, message, details)
        self.notes.append(message)

    def _check_space(self, record: RecordWriter, n_finished: int) -> None:
        """Refuse what clearly does not fit; say so if it may not."""
        if not self.is_stored:
            return
        share = 1 - n_finished / self.plan.n_chunks
        place = self.folder.final or self.folder.store
        outlook = foresee(self.plan, place, share)
        if outlook is not None and outlook.is_hopeless:
            raise refuse(outlook, place)
        if outlook is not None:
            self._note(record, "space", outlook.describe(), most_bytes=outlook.most_bytes)

    def _find_finished(self, record: RecordWriter) -> set[int]:
        """Return the chunks that an earlier run has done and that are still as it left them."""
        checksums = record.checksums()
        if not checksums:
            return set()
        if self.plan.result != "store":
            record.forget_chunks(checksums)  # what was in memory then is gone
            return set()
        stores.sweep(self._sink.path)
        damaged = find_damaged(self._sink, self.plan.grid, checksums, threads=os.cpu_count() or 1)
        if damaged:
            record.forget_chunks(damaged)
            message = (
                f"{format_count(len(damaged), 'chunk')} of the earlier run could not be read back "
                "as written: done again."
            )
            self._note(record, "damaged", message, chunks=sorted(damaged)[:1000])
        return checksums.keys() - damaged

    @cached_property
    def _sink(self) -> ZarrSink:
        """Where the chunks of a stored result go."""
        path = stores.array_path(self.folder.store, stores.variable_of(self.target))
        number, lease = self.folder.begin_lease(), os.fspath(self.folder.lease_path)
        return ZarrSink(os.fspath(path), number, lease)

    def _make_sink(self) -> Sink | None:
        plan, target = self.plan, self.target
        if plan.result == "value":
            return None
        if plan.result == "memory":
            if plan.engine in ("processes", "dask"):
                handle, self.values = SharedArray.create(target.shape, target.dtype)
                return SharedSink(handle)
            self.values = np.empty(target.shape, target.dtype)
            return MemorySink(self.values)
        if not plan.stored_chunks or not divides(plan.stored_chunks, plan.chunks, plan.lengths):
            # Two tasks would write the same stored chunk: a plan may have been changed by hand.
            stored = choose_stored_chunks(
                plan.grid.chunk,
                lengths=target.lengths,
                grain=target.grain,
                itemsize=target.dtype.itemsize,
            )
            self.plan = plan = replace(plan, stored_chunks=stored)
        stores.create_store(
            self.folder.store,
            lengths=target.lengths,
            dtype=target.dtype,
            chunks=plan.stored_chunks,
            variable=stores.variable_of(target),
            labels=put_labels_of(target, np.broadcast_to(np.zeros((), target.dtype), target.shape)),
            has_array=self.found.plan is not None,
        )
        return self._sink

    def _steer(self, record: RecordWriter, finished: set[int]) -> Progress:
        """Set the course of the run; return what shows how far it is."""
        plan = self.plan
        backlog = Backlog(plan.grid, finished)
        progress = Progress(
            plan.name, plan.n_chunks, len(finished), plan.options.get("quiet", False)
        )
        watch = self._watch(backlog.left, record, progress) if self.is_stored else None
        # A method would make a ring, in which the result stays until somebody looks for rings.
        leave_out = partial(_leave_blank, self.sink, plan.grid, self.target.dtype)
        self.course = Course(plan, self.target, backlog, record, progress, leave_out, watch)
        return progress

    def _run(self, engine: Engine, record: RecordWriter, progress: Progress) -> Any:
        plan, course, total = self.plan, self.course, self.plan.n_chunks
        read = self.target.read
        combine = read.step.combine if isinstance(read, Apply) else None
        watch = course.watch
        status = "failed"
        for note in self.notes:
            progress.say(note)
        with shielded():
            try:
                value = run_chunks(
                    engine,
                    course.backlog,
                    slots=plan.slots,
                    chunk_seconds=plan.seconds * plan.slots / total,
                    on_report=course.on_report,
                    on_setback=course.on_setback,
                    combine=combine,
                    gate=watch,
                )
                if course.first_error is not None and len(course.skipped) == total:
                    # Nothing is left: that is no result with gaps, but a function that fails.
                    raise course.first_error
                if watch is not None:
                    self._make_sure(watch, course)
                self.skipped += course.skipped
                status = "done"
            except (KeyboardInterrupt, SystemExit):
                status = "interrupted"
                raise
            finally:
                progress.close(status)
                with suppress(OutputError):  # what ended the run says more
                    record.describe({"status": status, "ended": time.time()})
        return value

    def _watch(self, left: int, record: RecordWriter, progress: Progress) -> Watch:
        def say(kind: str, message: str, details: Mapping[str, float]) -> None:
            progress.say(message)
            record.note_event(kind, message, details)

        plan = self.plan
        return Watch(
            self.folder,
            self._sink,
            plan.grid,
            cells_left=left,
            cell_bytes=plan.result_bytes // max(1, plan.n_chunks),
            slots=plan.slots,
            is_ready=record.flush,
            say=say,
        )

    def _make_sure(self, watch: Watch, course: Course) -> None:
        """Return when all that was done is noted, and still there."""
        watch.check_presence()
        if not watch.is_ready():
            watch.wait()
        if course.counts()["lost"]:
            stores.sweep(self._sink.path)

    def _finish(self, value: Any, metrics: dict[str, Any]) -> Run:
        folder = self.folder.finish()
        kept = replace(self.plan, target=self.kept_target or self.target)
        if self.plan.result == "value":
            run = Run(value, kept, metrics, folder.root, self.skipped, write_report, diagnose)
            owner: Any = run
        else:
            is_stored = self.values is None
            owner = open_stored(self.plan, folder.store) if is_stored else self.values
            result = present(self.plan, owner)
            run = Run(result, kept, metrics, folder.root, self.skipped, write_report, diagnose)
        if folder.is_temporary:
            # All that is later made of the result, lazily or as a view, holds its owner.
            weakref.finalize(owner, folder.remove)
        else:
            write_unasked(folder.root, metrics["wall_seconds"], self.plan.n_chunks)
        return run


def _leave_blank(sink: Sink | None, grid: Grid, dtype: np.dtype, unit: range) -> None:
    """Fill the place of a chunk that has no answer."""
    if sink is not None:
        ranges = grid.block(unit)
        sink.write(ranges, blank(ranges, dtype))
