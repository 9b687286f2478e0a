"""A task: a few units, read, computed, written, and summed up in a few numbers."""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from barrow.model.applied import Apply, leaf_ranges, leaves, rebind
from barrow.model.grid import Grid
from barrow.model.metered import Meter, metered
from barrow.model.source import Reader, Source
from barrow.pinning import library_threads, share_of_numba
from barrow.running.backlog import Batch
from barrow.running.fence import FENCE
from barrow.running.fold import Fold, Node
from barrow.running.ledger import checksum
from barrow.running.memory import PeakGauge, resident_bytes, tidy_up
from barrow.running.sinks import Sink, Trouble, WriteError
from barrow.running.strides import read_in_parts, read_in_strides, split_block
from barrow.shared import Ranges


@dataclass(frozen=True)
class Work:
    """All that is the same for every task of a run; it travels once."""

    target: Source
    grid: Grid
    sink: Sink | None
    """None for a reduction."""
    strides: Mapping[str, int] = field(default_factory=dict)
    """Blocks in which a task walks its chunk; empty when it takes it all at once."""
    budget_bytes: int = 0
    """What one task may use; 0 for no limit."""
    library_threads: int = 0
    """What a task asks for, to be used by numerical libraries; 0 if it asks for nothing."""
    neighbours: int = 1
    """How many tasks a worker runs at once."""

    @cached_property
    def base_bytes(self) -> int:
        """What this process held before its first task of this work."""
        return resident_bytes()

    def narrowed(self, units: Sequence[range]) -> list[tuple[Reader, ...]] | None:
        """Return readers that must travel with these units; None if none must."""
        below = leaves(self.target)
        if not any(leaf.read.is_heavy for leaf in below):
            return None
        found = []
        for unit in units:
            blocks = leaf_ranges(self.target, self.grid.block(unit))
            found.append(
                tuple(leaf.read.only(block) for leaf, block in zip(below, blocks, strict=True))
            )
        return found

    def shared(self) -> "Work":
        """Return the work with what this process holds in memory that its neighbours can open."""
        readers = (leaf.read.shared() for leaf in leaves(self.target))
        return replace(self, target=rebind(self.target, readers))

    def light(self) -> "Work":
        """Return the work without its heavy readers, which travel in small parts."""
        readers = (_Left() if leaf.read.is_heavy else leaf.read for leaf in leaves(self.target))
        return replace(self, target=rebind(self.target, readers))


class ChunkReport(NamedTuple):
    """What is kept of one chunk, or of several that were computed in one call."""

    number: int
    """Of the first chunk."""
    started: float
    """Seconds since the epoch."""
    read_seconds: float
    compute_seconds: float
    write_seconds: float
    cpu_seconds: float
    read_bytes: int
    written_bytes: int
    cells: int = 1
    """How many chunks it were."""
    checksums: tuple[int | None, ...] = (None,)
    """Of each chunk, where it is stored; see :mod:`barrow.running.ledger`."""
    peak_bytes: int = 0
    """Most memory the process held meanwhile, above what it held before its first task."""


@dataclass(frozen=True)
class TaskReport:
    """What a task sends back: numbers, and its part of a reduction."""

    worker: str
    resident_bytes: int
    """Memory of the whole process just after the task."""
    chunks: list[ChunkReport]
    parts: list[tuple[Node, Any]] = field(default_factory=list)
    left: list[range] = field(default_factory=list)
    """Units of the batch that were not done: the first of them failed."""
    trouble: Trouble | None = None
    """Why the first of them could not be stored, if that was it."""

    @property
    def n_cells(self) -> int:
        """How many chunks of the grid were done."""
        return sum(chunk.cells for chunk in self.chunks)


def perform(
    work: Work, batch: Batch, readers: Sequence[tuple[Reader, ...]] | None = None
) -> TaskReport:
    """Do some units, one after the other.

    If one fails, those before it are reported and the rest is left over. The error is
    raised only if it was the first, so nothing that was done is lost with it.
    """
    combine = _combine_of(work.target)
    fold = Fold(combine) if combine is not None else None
    strides = work.strides if batch.strides is None else batch.strides
    meter = Meter()
    target = metered(work.target, meter)
    reports: list[ChunkReport] = []
    short: list[tuple[Any, ...]] = []
    done = 0
    trouble = None
    # One fence for all: they run one after the other, and moving it takes longer than a tiny chunk.
    budget = batch.budget_bytes or work.budget_bytes
    threads: AbstractContextManager[None] = nullcontext()
    if work.library_threads:
        threads = library_threads(work.library_threads)
    elif work.neighbours > 1:
        threads = share_of_numba(work.neighbours)
    gauge = PeakGauge(work.base_bytes)
    with threads, gauge, FENCE.around(budget):
        for index, unit in enumerate(batch.units):
            if readers is not None:
                target = metered(work.target, meter, iter(readers[index]))
            try:
                if fold is not None:
                    measured = _add_one(work, target, meter, unit, fold, batch.parts)
                else:
                    measured = _write_one(work, target, meter, unit, strides, batch.parts)
            except WriteError as error:
                # No fault of the chunk: it is reported, not raised, and tried again later.
                trouble = error.trouble
                break
            except Exception:
                if not done:
                    raise
                break
            short.append(measured)
            done += 1
            if gauge.is_due or done == len(batch.units):
                peak = gauge.read()
                reports += [ChunkReport._make((*measured, peak)) for measured in short]
                short.clear()
        if short:
            peak = gauge.read()
            reports += [ChunkReport._make((*measured, peak)) for measured in short]
    return TaskReport(
        worker=f"{os.getpid()}/{threading.current_thread().name}",
        resident_bytes=tidy_up(gauge.resident_bytes, work.base_bytes + work.budget_bytes // 4),
        chunks=reports,
        parts=fold.parts() if fold is not None else [],
        left=batch.units[done:],
        trouble=trouble,
    )


def _write_one(
    work: Work,
    target: Source,
    meter: Meter,
    unit: range,
    strides: Mapping[str, int],
    parts: Mapping[str, int],
) -> tuple[Any, ...]:
    """Compute one unit of a map and put it into its place; return its report but the peak."""
    assert work.sink is not None
    started, cpu, begin = time.time(), time.thread_time(), time.perf_counter()
    meter.reset()
    ranges = work.grid.block(unit)
    if parts:
        block = read_in_parts(target, ranges, parts)
    elif strides:
        block = read_in_strides(target, ranges, strides)
    else:
        block = target.read(ranges)
    computed = time.perf_counter()
    work.sink.write(ranges, block)
    checksums = _checksums(work, unit, ranges, block)
    return (
        unit.start,
        started,
        meter.seconds,
        computed - begin - meter.seconds,
        time.perf_counter() - computed,
        time.thread_time() - cpu,
        meter.bytes,
        block.nbytes,
        len(unit),
        checksums,
    )


def _checksums(
    work: Work, unit: range, ranges: Ranges, block: np.ndarray
) -> tuple[int | None, ...]:
    """Return the checksum of each chunk of a unit, if it is to be found again later."""
    if work.sink is None or not work.sink.is_lasting:
        return (None,) * len(unit)
    if len(unit) == 1:
        return (checksum(block),)
    found = []
    for number in unit:
        cell = tuple(
            slice(start - low, stop - low)
            for (start, stop), (low, _) in zip(work.grid.ranges(number), ranges, strict=True)
        )
        found.append(checksum(block[cell]))
    return tuple(found)


def _add_one(
    work: Work,
    target: Source,
    meter: Meter,
    unit: range,
    fold: Fold,
    parts: Mapping[str, int],
) -> tuple[Any, ...]:
    """Compute one chunk of a reduction and add it up; return its report but the peak."""
    assert isinstance(target.read, Apply)
    # The last digits of a total depend on the chunks, so these are never put together.
    (number,) = unit
    started, cpu, begin = time.time(), time.thread_time(), time.perf_counter()
    meter.reset()
    ranges = work.grid.ranges(number)
    if parts:
        split = Fold(_combine_of(target))
        for index, (place, _) in enumerate(split_block(target, ranges, parts)):
            split.add((0, index), target.read.value(place))
        fold.add((0, number), split.result())
    else:
        fold.add((0, number), target.read.value(ranges))
    spent = time.perf_counter() - begin - meter.seconds
    cpu = time.thread_time() - cpu
    return number, started, meter.seconds, spent, 0.0, cpu, meter.bytes, 0, 1, (None,)


def _combine_of(target: Source) -> Any:
    return target.read.step.combine if isinstance(target.read, Apply) else None


class _Left(Reader):
    """Stands where a heavy reader was: its parts come with each task."""

    def __call__(self, ranges: Ranges) -> np.ndarray:
        raise AssertionError(f"the reader for {ranges} did not come with its task")
