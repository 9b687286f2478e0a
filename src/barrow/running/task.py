"""A task: a few chunks, read, computed, written, and summed up in a few numbers."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from barrow.model.applied import Apply, leaf_ranges, leaves, rebind
from barrow.model.grid import Grid
from barrow.model.metered import Meter, metered
from barrow.model.source import Reader, Source
from barrow.running.fold import Fold, Node
from barrow.running.sinks import Sink
from barrow.shared import Ranges


@dataclass(frozen=True)
class Work:
    """All that is the same for every task of a run; it travels once."""

    target: Source
    grid: Grid
    sink: Sink | None
    """None for a reduction."""

    def narrowed(self, numbers: Sequence[int]) -> list[tuple[Reader, ...]] | None:
        """Return readers that must travel with these chunks; None if none must."""
        below = leaves(self.target)
        if not any(leaf.read.is_heavy for leaf in below):
            return None
        found = []
        for number in numbers:
            blocks = leaf_ranges(self.target, self.grid.ranges(number))
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
    """What is kept of one chunk."""

    number: int
    started: float
    """Seconds since the epoch."""
    read_seconds: float
    compute_seconds: float
    write_seconds: float
    cpu_seconds: float
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True)
class TaskReport:
    """What a task sends back: numbers, and its part of a reduction."""

    worker: str
    resident_bytes: int
    """Memory of the whole process just after the task."""
    chunks: list[ChunkReport]
    parts: list[tuple[Node, Any]] = field(default_factory=list)


def perform(
    work: Work, numbers: Sequence[int], readers: Sequence[tuple[Reader, ...]] | None = None
) -> TaskReport:
    """Do some chunks, one after the other."""
    combine = _combine_of(work.target)
    fold = Fold(combine) if combine is not None else None
    meter = Meter()
    target = metered(work.target, meter)
    reports = []
    for index, number in enumerate(numbers):
        if readers is not None:
            target = metered(work.target, meter, iter(readers[index]))
        reports.append(_perform_one(work, target, meter, number, fold))
    return TaskReport(
        worker=f"{os.getpid()}/{threading.current_thread().name}",
        resident_bytes=resident_bytes(),
        chunks=reports,
        parts=fold.parts() if fold is not None else [],
    )


def _perform_one(
    work: Work, target: Source, meter: Meter, number: int, fold: Fold | None
) -> ChunkReport:
    started, cpu = time.time(), time.thread_time()
    meter.reset()
    ranges = work.grid.ranges(number)
    begin = time.perf_counter()
    written = 0
    if fold is not None:
        assert isinstance(target.read, Apply)
        fold.add((0, number), target.read.value(ranges))
        computed = time.perf_counter()
    else:
        assert work.sink is not None
        block = target.read(ranges)
        computed = time.perf_counter()
        work.sink.write(ranges, block)
        written = block.nbytes
    end = time.perf_counter()
    return ChunkReport(
        number=number,
        started=started,
        read_seconds=meter.seconds,
        compute_seconds=computed - begin - meter.seconds,
        write_seconds=end - computed,
        cpu_seconds=time.thread_time() - cpu,
        read_bytes=meter.bytes,
        written_bytes=written,
    )


def _combine_of(target: Source) -> Any:
    return target.read.step.combine if isinstance(target.read, Apply) else None


class _Left(Reader):
    """Stands where a heavy reader was: its parts come with each task."""

    def __call__(self, ranges: Ranges) -> np.ndarray:
        raise AssertionError(f"the reader for {ranges} did not come with its task")


def resident_bytes() -> int:
    """Return the memory that this process holds now."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        import psutil

        return int(psutil.Process().memory_info().rss)


_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def batches(numbers: Iterator[int], size: int) -> list[int]:
    """Return the next few numbers.

    Examples
    --------
    >>> batches(iter(range(5)), 3)
    [0, 1, 2]
    """
    found = []
    for number in numbers:
        found.append(number)
        if len(found) == size:
            break
    return found
