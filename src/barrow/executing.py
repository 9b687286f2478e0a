"""Carry a plan out: folder, record, sink, engine and progress around the engine room.

The one place where a plan becomes files, threads and workers.
"""

import json
import os
import platform
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from barrow.errors import OutputError
from barrow.explaining import write_report, write_unasked
from barrow.model.applied import Apply, kept_dims
from barrow.model.plan import Plan
from barrow.model.run import Run
from barrow.model.skipped import Skipped
from barrow.model.source import Source
from barrow.pinning import one_library_thread
from barrow.planning.layout import worker_limit
from barrow.planning.stored import choose_stored_chunks
from barrow.recording.record import RecordWriter, describe_environment, read_skipped
from barrow.remembering import doubting, learn_from
from barrow.running import folders, stores
from barrow.running.backlog import Backlog
from barrow.running.engines import DaskEngine, Engine, InlineEngine, ThreadEngine
from barrow.running.fingerprint import fingerprint
from barrow.running.folders import RunFolder
from barrow.running.ledger import find_damaged
from barrow.running.progress import Progress
from barrow.running.room import run_chunks
from barrow.running.sinks import MemorySink, SharedSink, Sink, ZarrSink, blank
from barrow.running.task import Work
from barrow.shared import SharedArray
from barrow.steering import Course
from barrow.units import format_count


def execute(
    plan: Plan,
    cluster: Any,
    kept_target: Source | None = None,
    skipped: Sequence[Skipped] = (),
) -> Run:
    """Run a plan to its end; ``cluster`` is a handle when its engine is Dask.

    Parameters
    ----------
    kept_target
        What the plan of the run keeps instead of its own target, so that it does not
        hold data that are soon gone.
    skipped
        Chunks that earlier stages have left out.
    """
    assert plan.target is not None
    to, resume = plan.options.get("to"), plan.options.get("resume", True)
    key, began = None, time.perf_counter()
    if to is None:
        folder = folders.open_run_folder(plan.name, plan.options.get("folder"))
    else:
        # A chain in stages makes the same result as one that is fused.
        key = fingerprint(plan.options.get("origin", plan.target))
        whole = folders.find_result(to)
        if whole is not None:
            return _reuse(plan, whole, key if resume else None)
        folder = folders.open_result_folder(to)
        plan = _adopt(plan, folder, key if resume else None)
    try:
        execution = _Execution(plan, folder, key, kept_target, tuple(skipped))
        with doubting(execution.target, key=plan.cost_key):
            return execution.carry_out(cluster)
    except BaseException:
        folder.release()
        if folder.is_temporary or folder.read_key() is None:
            folder.remove()  # nothing was begun that could be taken up again
        else:
            write_unasked(folder.root, time.perf_counter() - began, plan.n_chunks)
        raise


def _reuse(plan: Plan, folder: RunFolder, key: str | None) -> Run:
    """Return a result that is already there, if it is the one asked for."""
    if key is None or folder.read_key() != key:
        raise OutputError(
            f"{folder.store} holds another result: it was made by another function, with other "
            "arguments or from other data. Choose another place, or move it away."
        )
    skipped = read_skipped(folder.record_path)
    if skipped and plan.options.get("on_error") != "skip":
        raise OutputError(
            f"{folder.store} holds this result, but {format_count(len(skipped), 'chunk')} of it "
            f"were skipped. The first: {skipped[0]}\nUse it with on_error='skip', or choose "
            "another place."
        )
    metrics = json.loads(folder.metrics_path.read_text())
    plan = replace(plan, measured=compare(plan, metrics))
    result = _present(plan, _open_result(plan, folder))
    return Run(result, plan, metrics, folder.root, skipped, write_report)


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


def _adopt(plan: Plan, folder: RunFolder, key: str | None) -> Plan:
    """Return the plan with the chunks of an unfinished run of the same work, if there is one."""
    if key is not None and folder.read_key() == key and folder.plan_path.exists():
        earlier = Plan.load(folder.plan_path)
        return replace(
            plan,
            chunks=earlier.chunks,
            strides=earlier.strides,
            stored_chunks=earlier.stored_chunks,
        )
    folders.empty(folder)
    return plan


@dataclass
class _Execution:
    """One plan on its way: what it needs while it runs."""

    plan: Plan
    folder: RunFolder
    key: str | None
    kept_target: Source | None
    skipped: tuple[Skipped, ...] = ()
    """Chunks without an answer, first those of earlier stages."""
    sink: Sink | None = None
    values: np.ndarray | None = None
    """The result, when it stays in memory."""
    course: Course = field(init=False)
    """What happens on the way."""

    @property
    def target(self) -> Source:
        assert self.plan.target is not None
        return self.plan.target

    def carry_out(self, cluster: Any) -> Run:
        began, cpu_began = time.perf_counter(), time.process_time()
        with ExitStack() as stack:
            record = stack.enter_context(RecordWriter(self.folder.record_path))
            finished = self._find_finished(record)
            engine = self._start_engine(cluster, stack, is_new=not finished)
            # From here on, what is in the folder is worth being taken up again.
            self.plan.save(self.folder.plan_path)
            self.folder.key_path.write_text(self.key or "")
            record.describe({"plan": self.plan.to_json(), "began": time.time()})
            record.describe({"kind": "run", "pid": os.getpid(), "host": platform.node()})
            record.describe(describe_environment())
            record.forget_skipped()
            for earlier in self.skipped:
                record.note_skipped(earlier)
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
        self.folder.metrics_path.write_text(json.dumps(metrics, indent=2) + "\n")
        self.plan = replace(self.plan, measured=compare(self.plan, metrics))
        self.plan.save(self.folder.plan_path)
        return self._finish(value, metrics)

    def _find_finished(self, record: RecordWriter) -> set[int]:
        """Return the chunks that an earlier run has done and that are still as it left them."""
        checksums = record.checksums()
        if not checksums:
            return set()
        if self.plan.result != "store":
            record.forget_chunks(checksums)  # what was in memory then is gone
            return set()
        path = stores.array_path(self.folder.store, _variable(self.target))
        sink = ZarrSink(os.fspath(path), run=time.time_ns())
        damaged = find_damaged(sink, self.plan.grid, checksums, threads=os.cpu_count() or 1)
        if damaged:
            record.forget_chunks(damaged)
            message = (
                f"{format_count(len(damaged), 'chunk')} of the earlier run could not be read back "
                "as written: done again."
            )
            record.note_event("damaged", message, {"chunks": sorted(damaged)[:1000]})
        return checksums.keys() - damaged

    def _start_engine(self, cluster: Any, stack: ExitStack, *, is_new: bool) -> Engine:
        self.sink = self._make_sink(is_new=is_new)
        plan = self.plan
        work = Work(
            self.target,
            plan.grid,
            self.sink,
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

    def _make_sink(self, *, is_new: bool) -> Sink | None:
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
        variable = _variable(target)
        if is_new:
            stores.create_store(
                self.folder.store,
                lengths=target.lengths,
                dtype=target.dtype,
                chunks=plan.stored_chunks,
                variable=variable,
                labels=_label(target, np.broadcast_to(np.zeros((), target.dtype), target.shape)),
            )
        path = stores.array_path(self.folder.store, variable)
        return ZarrSink(os.fspath(path), run=time.time_ns())

    def _run(self, engine: Engine, record: RecordWriter, finished: set[int]) -> Any:
        plan, total = self.plan, self.plan.n_chunks
        read = self.target.read
        combine = read.step.combine if isinstance(read, Apply) else None
        backlog = Backlog(plan.grid, finished)
        progress = Progress(plan.name, total, len(finished), plan.options.get("quiet", False))
        self.course = course = Course(plan, self.target, backlog, record, progress, self._blank)
        status = "failed"
        try:
            value = run_chunks(
                engine,
                backlog,
                slots=plan.slots,
                chunk_seconds=plan.seconds * plan.slots / total,
                on_report=course.on_report,
                on_setback=course.on_setback,
                combine=combine,
            )
            if course.first_error is not None and len(course.skipped) == total:
                # Nothing is left: that is no result with gaps, but a function that fails.
                raise course.first_error
            self.skipped += tuple(course.skipped)
            status = "done"
        except KeyboardInterrupt:
            status = "interrupted"
            raise
        finally:
            progress.close(status)
            record.describe({"status": status, "ended": time.time()})
        return value

    def _blank(self, unit: range) -> None:
        """Fill the place of a chunk that has no answer."""
        if self.sink is not None:
            ranges = self.plan.grid.block(unit)
            self.sink.write(ranges, blank(ranges, self.target.dtype))

    def _finish(self, value: Any, metrics: dict[str, Any]) -> Run:
        folder = self.folder.finish()
        kept = replace(self.plan, target=self.kept_target or self.target)
        if self.plan.result == "value":
            run = Run(value, kept, metrics, folder.root, self.skipped, write_report)
            owner: Any = run
        else:
            owner = self.values if self.values is not None else _open_result(self.plan, folder)
            result = _present(self.plan, owner)
            run = Run(result, kept, metrics, folder.root, self.skipped, write_report)
        if not folder.is_temporary:
            write_unasked(folder.root, metrics["wall_seconds"], self.plan.n_chunks)
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
