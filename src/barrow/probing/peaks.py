"""Find how the peak memory of a task grows with its size."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, replace

from barrow.model.applied import evaluate
from barrow.model.source import Source
from barrow.probing.child import measure_peaks
from barrow.probing.fits import fit_peak
from barrow.probing.sizes import Sample
from barrow.shared import Ranges

# A task that takes more of its budget than this is worth a process of its own to measure it.
EXACT_SHARE = 0.02
# Traced, the memory of compiled libraries is not seen: allow for more.
TRACED_MARGIN = 0.2


@dataclass(frozen=True)
class Peak:
    """Peak = base + per item × items, and how far above it the truth may lie."""

    base: float
    per_item: float
    margin: float


def measure_peak(
    target: Source, samples: Sequence[Sample], *, budget_bytes: int, may_be_slow: bool
) -> Peak:
    """Return the peak of tasks, measured at a few sizes.

    Parameters
    ----------
    budget_bytes
        What one task may use, roughly.
    may_be_slow
        Whether there is time for a process of its own.
    """
    items = [sample.items for sample in samples]
    blocks = [sample.blocks[0] for sample in samples]
    traced = [_trace_peak(target, block) for block in blocks]
    if may_be_slow or max(traced) > EXACT_SHARE * budget_bytes:
        peaks = measure_peaks(target, blocks)
        if peaks is not None:
            return Peak(*fit_peak(items, peaks))
    found = Peak(*fit_peak(items, traced))
    return replace(found, margin=found.margin + TRACED_MARGIN)


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
