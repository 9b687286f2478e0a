"""Find how the peak memory of a task grows with its size."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

from barrow.model.applied import evaluate, leaves, rebind
from barrow.model.reading import count_block_bytes
from barrow.model.source import Source
from barrow.probing.child import Fresh, measure_peaks
from barrow.probing.fits import Peak, fit_peak
from barrow.probing.sizes import Sample
from barrow.shared import Ranges

# Of each size so many tasks are measured, and none larger than this if smaller ones were:
# peaks grow in proportion, and what is measured has to travel to another process.
PLACES = 2
LARGEST_BYTES = 2**25
# A task that takes more of its budget than this is worth a process of its own to measure it.
EXACT_SHARE = 0.02
# Traced, the memory of compiled libraries is not seen: allow for more, and for much more
# where a function shows nothing beyond its input and its answer, as LAPACK's do.
TRACED_MARGIN = 0.2
OPAQUE_MARGIN = 2.0


def measure_peak(
    target: Source,
    samples: Sequence[Sample],
    *,
    budget_bytes: int,
    may_be_slow: bool,
    may_fail: bool = False,
) -> Peak:
    """Return the peak of tasks, measured at a few sizes.

    Parameters
    ----------
    budget_bytes
        What one task may use, roughly.
    may_be_slow
        Whether there is time for a process of its own.
    may_fail
        Whether the function may raise on some of the samples.
    """
    small = [s for s in samples if count_block_bytes(target, s.blocks[0]) <= LARGEST_BYTES]
    samples = small or samples[:1]
    pairs = [(sample.items, block) for sample in samples for block in sample.blocks[:PLACES]]
    items, blocks = [size for size, _ in pairs], [block for _, block in pairs]
    # A worker reads into memory of its own, so the input counts, also where it is here already.
    target = rebind(target, (Fresh(leaf.read) for leaf in leaves(target)))
    peaks = measure_peaks(target, blocks) if may_be_slow else None
    if peaks is not None:
        return fit_peak(items, peaks)
    traced = [_trace_peak(target, block, may_fail) for block in blocks]
    if not may_be_slow and max(peak for peak, _ in traced) > EXACT_SHARE * budget_bytes:
        peaks = measure_peaks(target, blocks)
        if peaks is not None:
            return fit_peak(items, peaks)
    found = fit_peak(items, [peak for peak, _ in traced])
    peak, shown = traced[-1]
    extra = OPAQUE_MARGIN if peak < 1.05 * shown else TRACED_MARGIN
    return replace(found, margin=found.margin + extra)


def _trace_peak(target: Source, block: Ranges, may_fail: bool) -> tuple[int, int]:
    """Return the peak, and what of it are input and answer."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        kept = None
        try:
            kept = evaluate(target, block)
        except Exception:
            if not may_fail:
                raise
        peak = tracemalloc.get_traced_memory()[1]
        shown = count_block_bytes(target, block) + int(getattr(kept, "nbytes", 0))
        return max(1, peak - before), shown
    finally:
        if not was_tracing:
            tracemalloc.stop()
