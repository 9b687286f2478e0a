"""Measure what a chain of steps costs: time at several sizes, peak memory, gain of threads."""

import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import fmean, pstdev

from barrow.model.applied import evaluate, leaf_ranges, leaves
from barrow.model.cost import Cost
from barrow.model.source import Source
from barrow.probing.child import measure_peaks
from barrow.probing.fits import fit_peak
from barrow.probing.lock import measure_lock_share
from barrow.probing.writing import measure_writing
from barrow.shared import Ranges

# Bytes read by the tasks that are timed: what fits the caches, and what does not.
SIZES = (2**18, 2**21, 2**24)
PLACES = (0.5, 0.15, 0.85)
# Measuring may take a second, or this share of the run.
BUDGET_SECONDS = 1.0
BUDGET_SHARE = 0.02
# A task that takes more of its budget than this is worth a process of its own to measure it.
EXACT_SHARE = 0.02
SHORT_SECONDS = 0.02
# Threads gain nothing from a function that holds Python's lock for more of its time.
MUCH_LOCKED = 0.3
# With so much of all cores in use there is no need to ask what holds them back.
GOOD_SHARE = 0.8

Block = Callable[[Mapping[str, int], float], Ranges]
"""A block of these lengths, at a place between the beginning (0) and the end (1)."""


@dataclass(frozen=True)
class Sample:
    """One size at which the cost is measured."""

    items: int
    blocks: tuple[Ranges, ...]
    """The same size at several places of the data."""


def count_items(target: Source, ranges: Ranges) -> int:
    """Return how many items a task on this block reads, halo included."""
    total = 0
    for block in leaf_ranges(target, ranges):
        items = 1
        for start, stop in block:
            items *= stop - start
        total += items
    return max(1, total)


def choose_samples(
    target: Source, rungs: Sequence[Mapping[str, int]], block: Block
) -> list[Sample]:
    """Return the sizes to measure: the rungs nearest to a few round sizes."""
    itemsize = max(leaf.dtype.itemsize for leaf in leaves(target)) or 1
    sizes = [count_items(target, block(rung, 0.5)) for rung in rungs]
    chosen: dict[int, Mapping[str, int]] = {}
    for wanted in SIZES:
        nearest = min(range(len(rungs)), key=lambda i: abs(sizes[i] * itemsize - wanted))
        chosen[sizes[nearest]] = rungs[nearest]
    return [
        Sample(items, tuple(dict.fromkeys(block(rung, place) for place in PLACES)))
        for items, rung in sorted(chosen.items())
    ]


def measure_cost(
    target: Source,
    samples: Sequence[Sample],
    *,
    total_items: int,
    cores: int,
    budget_bytes: int,
    is_stored: bool,
) -> Cost:
    """Return the cost of a chain of steps.

    Parameters
    ----------
    total_items
        Items of the whole work: what takes longer may be measured for longer.
    budget_bytes
        What one task may use, roughly: if it comes near, its peak is measured exactly.
    is_stored
        Whether the answer goes to a store, so that writing counts.
    """
    startup, points, spread = _measure_time(target, samples, total_items)
    sizes = [sample for sample in samples if sample.items <= points[-1][0]]
    quick = [
        s for s, (_, seconds) in zip(sizes, points, strict=True) if seconds < 5 * SHORT_SECONDS
    ]
    base, factor, margin = _measure_peak(target, quick or sizes[:1], budget_bytes)
    thread_gain = process_gain = 1.0
    if cores > 1:
        thread_gain, process_gain = _measure_gain(target, sizes, points, cores)
    return Cost(
        points=tuple(points),
        spread=spread,
        peak_base_bytes=base,
        peak_per_item=factor,
        peak_margin=margin,
        thread_gain=thread_gain,
        process_gain=process_gain,
        write_seconds_per_byte=measure_writing(target, sizes[-1].blocks[0]) if is_stored else 0.0,
        startup_seconds=startup,
    )


def _measure_time(
    target: Source, samples: Sequence[Sample], total_items: int
) -> tuple[float, list[tuple[int, float]], float]:
    """Return what the first call cost on top, the points, and their scatter."""
    began = time.perf_counter()
    first = _timed(target, samples[0].blocks[0])
    again = _timed(target, samples[0].blocks[0])
    points: list[tuple[int, float]] = []
    spread = 0.0
    for sample in samples:
        blocks = sample.blocks
        if points:
            items, seconds_then = points[-1]
            expected = seconds_then * sample.items / items
            left = max(BUDGET_SECONDS, BUDGET_SHARE * seconds_then * total_items / items)
            left -= time.perf_counter() - began
            # One place is better than none.
            blocks = blocks[: max(1, int(left / expected))]
            if expected > left:
                break
        seconds = [_time_block(target, block) for block in blocks]
        points.append((sample.items, max(1e-7, fmean(seconds))))
        spread = pstdev(seconds) / fmean(seconds)
    return max(0.0, first - again), points, spread


def _time_block(target: Source, block: Ranges) -> float:
    seconds = _timed(target, block)
    # One short task may meet an interruption; the better of two rarely does.
    return min(seconds, _timed(target, block)) if seconds < SHORT_SECONDS else seconds


def _timed(target: Source, block: Ranges) -> float:
    start = time.perf_counter()
    evaluate(target, block)
    return time.perf_counter() - start


def _measure_peak(
    target: Source, samples: Sequence[Sample], budget_bytes: int
) -> tuple[float, float, float]:
    """Return base, factor and margin of the peak."""
    items = [sample.items for sample in samples]
    blocks = [sample.blocks[0] for sample in samples]
    traced = [_trace_peak(target, block) for block in blocks]
    base, factor, margin = fit_peak(items, traced)
    if max(traced) > EXACT_SHARE * budget_bytes:
        peaks = measure_peaks(target, blocks)
        if peaks is not None:
            return fit_peak(items, peaks)
    # Traced, the memory of compiled libraries is not seen: allow for more.
    return base, factor, margin + 0.2


def _trace_peak(target: Source, block: Ranges) -> int:
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        kept = evaluate(target, block)
        peak = tracemalloc.get_traced_memory()[1]
        del kept
        return max(1, peak - before)
    finally:
        if not was_tracing:
            tracemalloc.stop()


def _measure_gain(
    target: Source, samples: Sequence[Sample], points: Sequence[tuple[int, float]], cores: int
) -> tuple[float, float]:
    """Return how much faster all cores are than one, with threads and with processes."""
    # The largest size: small tasks spend their time in Python, which their share of the
    # overhead of a chunk accounts for.
    seconds = points[-1][1]
    calls = max(1, min(50, round(SHORT_SECONDS / seconds)))
    if 2 * cores * calls * seconds > BUDGET_SECONDS:
        calls = 1
    blocks = samples[-1].blocks

    def work(index: int) -> None:
        for _ in range(calls):
            evaluate(target, blocks[index % len(blocks)])

    def time_all(pool: ThreadPoolExecutor, count: int) -> float:
        start = time.perf_counter()
        list(pool.map(work, range(count)))
        return time.perf_counter() - start

    trials = 3 if calls * seconds < 2 * SHORT_SECONDS else 1
    with ThreadPoolExecutor(cores) as pool:
        if trials > 1:
            time_all(pool, cores)  # let each thread get its memory first
        # Other programs can only make it slower, so the best of a few is nearest to the truth.
        together = min(time_all(pool, cores) for _ in range(trials))
        alone = min(time_all(pool, 1) for _ in range(trials)) if trials > 1 else calls * seconds
    gain = max(0.5, min(float(cores), cores * alone / together))
    locked = measure_lock_share(lambda: work(0)) if gain < GOOD_SHARE * cores else 0.0
    if locked < MUCH_LOCKED:
        # What holds threads back here, bandwidth or other users, holds processes back too.
        return gain, max(1.0, gain)
    return min(gain, 1 / locked), float(cores)
