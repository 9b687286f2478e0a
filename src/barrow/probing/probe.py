"""Call a step on small real blocks: learn what it returns and what it costs.

The function sees nothing but pieces of the user's own data. An empty array is
handed to it only when the data themselves are empty.
"""

import time
import tracemalloc
from collections.abc import Sequence

from barrow.errors import StepError
from barrow.model.applied import (
    Apply,
    Form,
    as_array,
    join_grains,
    join_lengths,
    leaf_ranges,
    read_inputs,
)
from barrow.model.cost import Cost
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.probing.forms import Observation, infer_form
from barrow.probing.lock import measure_lock_share
from barrow.probing.samples import Core, sample_cores
from barrow.shared import Ranges

LOCK_SECONDS = 0.02
# Two threads gain nothing from a function that holds the lock for more of its time.
MOST_LOCKED = 0.4


def learn_form(step: Step, inputs: Sequence[Source]) -> Form:
    """Return what a (resolved) step makes of its inputs, by calling it a few times."""
    lengths = join_lengths(inputs)
    grain = join_grains(inputs)
    whole = frozenset(str(dim) for dim in step.whole)
    if 0 in lengths.values():
        whole = frozenset(lengths)
    # Each turn finds at least one more dimension that must be whole, or ends.
    for _ in range(len(lengths) + 1):
        form = infer_form(step, lengths, whole, _observe(step, inputs, lengths, grain, whole))
        if form.whole == whole:
            return form
        whole = form.whole
    raise StepError(
        f"'{step.name}' returns other shapes each time it is called with all of "
        f"{sorted(lengths)}. Use barrow.reduce with a combine function."
    )


def _observe(
    step: Step,
    inputs: Sequence[Source],
    lengths: dict[str, int],
    grain: dict[str, int],
    whole: frozenset[str],
) -> list[Observation]:
    failure: Exception | None = None
    for cores in sample_cores(lengths, grain, whole):
        try:
            return [_call(step, inputs, core) for core in cores]
        except StepError:
            raise
        except Exception as error:
            # Perhaps the block was too small for this function: offer a larger one.
            failure = error
    assert failure is not None
    raise failure


def _call(step: Step, inputs: Sequence[Source], core: Core) -> Observation:
    arrays, margins = read_inputs(step, inputs, core)
    unknown = Form({}, inputs[0].dtype, frozenset(), frozenset())
    answer = as_array(Apply(step, tuple(inputs), unknown).call(arrays, core), step)
    given = {dim: stop - start + sum(margins[dim]) for dim, (start, stop) in core.items()}
    return Observation(given, answer.shape, answer.dtype)


def measure_cost(target: Source, small: Ranges, large: Ranges) -> Cost:
    """Return the cost of a chain of steps, from one small and one large block of it.

    Time comes from the large block, which is near the working size; peak memory
    from the small one, traced, since it grows in proportion.
    """
    _value(target, small)  # imports, compilation, caches: not typical, so not counted
    small_items, large_items = count_items(target, small), count_items(target, large)
    small_seconds, peak = _traced(target, small)
    large_seconds = min(_timed(target, large) for _ in range(2))
    per_item = large_seconds / large_items
    if large_items > 2 * small_items and large_seconds > small_seconds:
        per_item = (large_seconds - small_seconds) / (large_items - small_items)
    return Cost(
        seconds_base=max(0.0, large_seconds - per_item * large_items),
        seconds_per_item=per_item,
        peak_base_bytes=0.0,
        peak_per_item=peak / small_items,
        releases_gil=_releases_gil(target, large, large_seconds),
    )


def count_items(target: Source, ranges: Ranges) -> int:
    """Return how many items a task on this block reads, halo included."""
    total = 0
    for block in leaf_ranges(target, ranges):
        items = 1
        for start, stop in block:
            items *= stop - start
        total += items
    return max(1, total)


def _value(target: Source, ranges: Ranges) -> object:
    read = target.read
    if isinstance(read, Apply) and read.step.combine is not None:
        return read.value(ranges)
    return read(ranges)


def _timed(target: Source, ranges: Ranges) -> float:
    start = time.perf_counter()
    _value(target, ranges)
    return time.perf_counter() - start


def _traced(target: Source, ranges: Ranges) -> tuple[float, int]:
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        seconds = _timed(target, ranges)
        return seconds, max(1, tracemalloc.get_traced_memory()[1] - before)
    finally:
        if not was_tracing:
            tracemalloc.stop()


def _releases_gil(target: Source, ranges: Ranges, seconds: float) -> bool:
    """Return whether threads could do this side by side."""
    # Several calls, if one is too short to be caught waiting.
    calls = max(1, min(20, round(LOCK_SECONDS / max(seconds, 1e-6))))

    def call() -> None:
        for _ in range(calls):
            _value(target, ranges)

    return measure_lock_share(call) < MOST_LOCKED
