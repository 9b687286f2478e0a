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
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import BarrowError, OutputError
from barrow.model.applied import Apply, kept_dims
from barrow.model.plan import Plan
from barrow.model.run import Run
from barrow.model.source import Source
from barrow.pinning import one_library_thread
from barrow.planning.layout import worker_limit
from barrow.planning.stored import choose_stored_chunks, divides
from barrow.recording.opening import open_record, read_fact
from barrow.recording.record import RecordWriter, describe_environment
from barrow.remembering import doubting, learn_from
from barrow.running import folders, stores
from barrow.running.backlog import Backlog
from barrow.running.disk import write_whole
from barrow.running.engines import DaskEngine, Engine, InlineEngine, ThreadEngine
from barrow.running.fingerprint import fingerprint
from barrow.running.folders import RunFolder
from barrow.running.ledger import find_damaged
from barrow.running.progress import Progress
from barrow.running.room import run_chunks
from barrow.running.sinks import MemorySink, SharedSink, Sink, ZarrSink
from barrow.running.space import foresee, refuse
from barrow.running.task import Work
from barrow.running.watch import Watch
from barrow.shared import SharedArray
from barrow.steering import Course
from barrow.units import format_count


def execute(plan: Plan, cluster: Any, kept_target: Source | None = None) -> Run:
    """Run a plan to its end; ``cluster`` is a handle when its engine is Dask.

    The plan of the run keeps another target if one is given: so it does not hold
    data that are soon gone.
    """
    assert plan.target is not None
    to, resume = plan.options.get("to"), plan.options.get("resume", True)
    key = None
    if to is None:
        folder = folders.open_run_folder(plan.name, plan.options.get("folder"))
    else:
        if plan.result == "memory":  # the place was named after the plan was made
            plan = replace(plan, result="store", stored_chunks={})
        # A chain in stages makes the same result as one that is fused.
        key = fingerprint(plan.options.get("origin", plan.target))
        whole = folders.find_result(to)
        if whole is not None:
            return _reuse(plan, whole, key if resume else None)
        folder = folders.open_result_folder(to)
    try:
        if to is not None and (whole := folders.find_result(to)) is not None:
            folder.remove()  # another process has just finished it
            return _reuse(plan, whole, key if resume else None)
        found = _Leftover() if to is None else _adopt(plan, folder, key if resume else None)
        execution = _Execution(found.settle(plan), folder, key, kept_target, found)
        with doubting(execution.target, key=plan.cost_key):
            return execution.carry_out(cluster)
    except BaseException:
        if folder.is_temporary or not folder.is_begun:
            folder.remove()  # nothing was begun that could be taken up again
        folder.release()
        raise


def _reuse(plan: Plan, folder: RunFolder, key: str | None) -> Run:
    """Return a result that is already there, if it is the one asked for."""
    if key is None or folder.read_key() != key:
        raise OutputError(
            f"{folder.store} holds another result: it was made by another function, with other "
            "arguments or from other data. Choose another place, or move it away."
        )
    try:
        metrics = json.loads(folder.metrics_path.read_text())
        plan = replace(plan, measured=compare(plan, metrics))
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{folder.metrics_path} cannot be read ({error})"
        raise folders.damaged_result(folder, why) from None
    try:
        opened = _open_result(plan, folder)
    except Exception as error:
        raise OutputError(
            f"{folder.store} holds a result that cannot be opened any more: {error}. It is left "
            "as it is. Move it away to compute it again, or choose another place."
        ) from None
    return Run(_present(plan, opened), plan, metrics, folder.root)


def open_values(run: Run) -> Any:
    """Return the result of a run that nobody gave a place, without labels: a plain array."""
    if run.plan.result == "store":
        return _open_result(run.plan, RunFolder(run.folder, run.folder / "result.zarr"))
    is_plain = run.plan.target is None or run.plan.target.labels is None
    return run.result if is_plain else run.result.values


def discard(run: Run) -> None:
    """Remove what a run that nobody gave a place has left on disk."""
    RunFolder(run.folder, run.folder / "result.zarr").remove()


def compare(plan: Plan, metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return what a run took, by the names under which a plan shows it."""
    chunks = metrics["chunks"]
    spent = sum(metrics[name] for name in ("read_seconds", "compute_seconds", "write_seconds"))
    measured = {
        "wall_seconds": metrics["wall_seconds"],
        "task_seconds": spent / max(1, chunks),
        "chunks": chunks,
        "chunks_found": metrics["chunks_found"],
        "probing_seconds": plan.cost.probing_seconds,
    }
    peaks = ("peak_task_bytes", "peak_resident_bytes")
    name = next((name for name in peaks if metrics.get(name)), None)
    return measured if name is None else {**measured, name: metrics[name]}


@dataclass(frozen=True)
class _Leftover:
    """What an earlier run of the same work has left."""

    plan: Plan | None = None
    """Its plan; None if there is nothing that could be used."""
    fault: str = ""
    """What was wrong with it, as a sentence."""

    def settle(self, plan: Plan) -> Plan:
        """Return a plan with the chunks in which the work was begun."""
        if self.plan is None:
            return plan
        return replace(
            plan,
            chunks=self.plan.chunks,
            strides=self.plan.strides,
            stored_chunks=self.plan.stored_chunks,
        )


def _adopt(plan: Plan, folder: RunFolder, key: str | None) -> _Leftover:
    """Return what an unfinished run of the same work has left; remove what cannot be used."""
    fault = ""
    if key is not None and folder.read_key() == key:
        earlier = _read_earlier(folder)
        if earlier is None or not _is_alike(earlier, plan):
            fault = "its plan cannot be read"
        elif not _has_store(earlier, plan, folder):
            fault = "its store is damaged"
        else:
            return _Leftover(earlier)
        fault = f"An unfinished run was found, but {fault}: everything is done again."
    folders.empty(folder)
    return _Leftover(fault=fault)


def _read_earlier(folder: RunFolder) -> Plan | None:
    """Return the plan of an unfinished run, from its file or else from its record."""
    with suppress(BarrowError):
        return Plan.load(folder.plan_path)
    with suppress(BarrowError):
        return Plan.from_json(read_fact(folder.record_path, "plan") or "")
    return None


def _is_alike(earlier: Plan, plan: Plan) -> bool:
    try:
        chunk = earlier.grid.chunk
    except BarrowError:
        return False
    is_same = dict(earlier.lengths) == dict(plan.lengths) and earlier.dtype == plan.dtype
    return is_same and divides(earlier.stored_chunks, chunk, plan.lengths)


def _has_store(earlier: Plan, plan: Plan, folder: RunFolder) -> bool:
    assert plan.target is not None
    return stores.is_as_made(
        folder.store,
        lengths=plan.target.lengths,
        dtype=plan.target.dtype,
        chunks=earlier.stored_chunks,
        variable=_variable(plan.target),
    )


@dataclass
class _Execution:
    """One plan on its way: what it needs while it runs."""

    plan: Plan
    folder: RunFolder
    key: str | None
    kept_target: Source | None
    found: _Leftover = field(default_factory=_Leftover)
    values: np.ndarray | None = None
    """The result, when it stays in memory."""
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
            engine = self._start_engine(cluster, stack)
            # From here on, what is in the folder is worth being taken up again.
            self._keep(self.folder.plan_path, self.plan.to_json())
            self._keep(self.folder.key_path, self.key or "")
            record.describe({"plan": self.plan.to_json(), "began": time.time()})
            record.describe(describe_environment())
            value = self._run(engine, record, finished)
            totals = record.totals()
            metrics = {
                **totals,
                "chunks_planned": self.plan.n_chunks,
                "chunks_found": len(finished),
                **self.course.counts(),
                "engine": self.plan.engine,
                "workers": self.plan.workers,
                "threads": self.plan.threads,
                "wall_seconds": time.perf_counter() - began,
                "client_cpu_seconds": time.process_time() - cpu_began,
            }
        learn_from(self.plan, len(finished), totals)
        self._keep(self.folder.metrics_path, json.dumps(metrics, indent=2))
        self.plan = replace(self.plan, measured=compare(self.plan, metrics))
        self._keep(self.folder.plan_path, self.plan.to_json())
        return self._finish(value, metrics)

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
        record, fault = open_record(self.folder.record_path, may_leave_disk=not self.is_stored)
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
        path = stores.array_path(self.folder.store, _variable(self.target))
        return ZarrSink(os.fspath(path), run=time.time_ns())

    def _start_engine(self, cluster: Any, stack: ExitStack) -> Engine:
        plan = self.plan
        work = Work(
            self.target,
            plan.grid,
            self._make_sink(),
            plan.strides,
            plan.budget_bytes,
        )
        if plan.engine == "inline":
            return InlineEngine(work)
        if plan.engine == "threads":
            stack.enter_context(one_library_thread())
            return ThreadEngine(work, plan.threads)
        if plan.engine == "processes":
            from barrow.sites.local import start_local

            limit = worker_limit(plan.budget_bytes, plan.threads)
            cluster = stack.enter_context(start_local(plan.workers, plan.threads, limit))
        stack.enter_context(cluster.failing_fast())
        if plan.is_local:
            work = work.shared()
        # A worker that keeps so much from its tasks has no room for the next one.
        recycle = cluster.site().limit_bytes - plan.budget_bytes if cluster.is_supervised else 0
        return DaskEngine(
            work,
            cluster.client,
            plan.slots,
            plan.name,
            recycle_bytes=max(0, recycle),
            on_recycle=lambda report: self.course.on_recycle(report),
        )

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
        if not plan.stored_chunks:
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
            variable=_variable(target),
            labels=_label(target, np.broadcast_to(np.zeros((), target.dtype), target.shape)),
            has_array=self.found.plan is not None,
        )
        return self._sink

    def _run(self, engine: Engine, record: RecordWriter, finished: set[int]) -> Any:
        plan, total = self.plan, self.plan.n_chunks
        read = self.target.read
        combine = read.step.combine if isinstance(read, Apply) else None
        backlog = Backlog(plan.grid, finished)
        progress = Progress(plan.name, total, len(finished), plan.options.get("quiet", False))
        watch = self._watch(backlog.left, record, progress) if self.is_stored else None
        self.course = course = Course(plan, self.target, backlog, record, progress, watch)
        status = "failed"
        for note in self.notes:
            progress.say(note)
        try:
            value = run_chunks(
                engine,
                backlog,
                slots=plan.slots,
                chunk_seconds=plan.seconds * plan.slots / total,
                on_report=course.on_report,
                on_setback=course.on_setback,
                combine=combine,
                gate=watch,
            )
            if watch is not None:
                self._make_sure(watch, course)
            status = "done"
        except KeyboardInterrupt:
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
            run = Run(value, kept, metrics, folder.root)
            owner: Any = run
        else:
            owner = self.values if self.values is not None else _open_result(self.plan, folder)
            run = Run(_present(self.plan, owner), kept, metrics, folder.root)
        if folder.is_temporary:
            # All that is later made of the result, lazily or as a view, holds its owner.
            weakref.finalize(owner, folder.remove)
        return run


def _open_result(plan: Plan, folder: RunFolder) -> Any:
    assert plan.target is not None
    return stores.open_store(stores.array_path(folder.store, _variable(plan.target)))


def _variable(target: Source) -> str | None:
    return None if target.labels is None else str(target.labels.name or "result")


def _present(plan: Plan, values: Any) -> Any:
    """Return a result as the user gave the source: an array, or a DataArray."""
    assert plan.target is not None
    if plan.target.labels is None:
        return values
    if not isinstance(values, np.ndarray):
        import dask.array

        values = dask.array.from_array(values, chunks=values.chunks)
    return _label(plan.target, values)


def _label(target: Source, values: Any) -> Any:
    if target.labels is None:
        return None
    from barrow.sources.labelled import put_labels

    return put_labels(values, target.lengths, kept_dims(target), target.labels)
