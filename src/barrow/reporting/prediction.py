"""Set what the plan predicted beside what was measured, task by task."""

from collections.abc import Callable

import numpy as np

from barrow.model.plan import Plan
from barrow.reporting.content import Compared, Pairs, Prediction
from barrow.reporting.tasks import Tasks
from barrow.reporting.words import to_list
from barrow.units import format_bytes, format_seconds

MOST_PAIRS = 2000
# Of these, so many are the ones that were predicted worst and the largest ones.
MOST_EXTREME = 200


def compare_with_plan(plan: Plan, tasks: Tasks, seconds: float) -> Prediction:
    """Return predicted and measured time and memory.

    Parameters
    ----------
    seconds
        What the run took.
    """
    done = tasks.pick(tasks.is_done & (tasks.first_chunk >= 0))
    if not len(done):
        return Prediction()
    items = plan.items * _share_of_chunk(plan, done)
    at_once = plan.threads if plan.engine in ("threads", "processes", "dask") else 1
    taken = peaks = None
    if plan.seconds:
        expected = plan.task_seconds * _relative(plan.cost.seconds, items, plan.items)
        taken = _pair(expected, done.seconds, done.label)
    if np.nanmax(done.peak_bytes, initial=0) > 0:
        # A task that walks its chunk in blocks holds one of them, however large the chunk.
        grows = np.ones(len(done)) if plan.strides else None
        if grows is None:
            grows = _relative(plan.cost.peak_bytes, items, plan.items)
        peaks = _pair(plan.peak_bytes * at_once * grows, done.peak_bytes, done.label)
    rows = _list_rows(plan, done, seconds, at_once)
    return Prediction(rows, taken, peaks, at_once)


def _share_of_chunk(plan: Plan, tasks: Tasks) -> np.ndarray:
    """Return how many whole chunks each call has computed; one at the edge is less than one."""
    grid = plan.grid
    share = np.ones(len(tasks))
    rest = tasks.first_chunk.copy()
    for count, (dim, length) in zip(
        reversed(grid.counts), reversed(list(grid.lengths.items())), strict=True
    ):
        size = grid.chunk[dim]
        rest, index = np.divmod(rest, count)
        share *= np.minimum(size, length - index * size) / size
    return np.asarray(share * tasks.cells)


def _relative(cost: Callable[[float], float], items: np.ndarray, usual: int) -> np.ndarray:
    """Return the cost of so many items as a multiple of that of a usual task."""
    if not (base := cost(usual)) > 0:
        return items / max(1, usual)
    sizes, which = np.unique(items, return_inverse=True)
    return np.array([cost(size) / base for size in sizes.tolist()])[which]


def _pair(predicted: np.ndarray, measured: np.ndarray, label: list[str]) -> Pairs:
    chosen = np.arange(len(predicted))
    if len(chosen) > MOST_PAIRS:
        wrong = np.abs(np.log(np.maximum(measured, 1e-9) / np.maximum(predicted, 1e-9)))
        extreme = {*np.argsort(-wrong)[:MOST_EXTREME], *np.argsort(-measured)[:MOST_EXTREME]}
        even = np.linspace(0, len(chosen) - 1, MOST_PAIRS - len(extreme)).astype(int)
        chosen = np.array(sorted(extreme.union(even.tolist())))
    return Pairs(
        to_list(predicted[chosen]),
        to_list(measured[chosen]),
        [label[i] for i in chosen],
        len(predicted),
    )


def _list_rows(plan: Plan, done: Tasks, seconds: float, at_once: int) -> tuple[Compared, ...]:
    chunks = int(done.cells.sum())
    rows = [Compared("chunks", f"{plan.n_chunks:,}", f"{chunks:,}")]
    if plan.seconds:
        per_chunk = float(done.seconds.sum() / max(1, chunks))
        rows.append(_compare("time of the run", plan.seconds, seconds, format_seconds))
        rows.append(_compare("time of one chunk", plan.task_seconds, per_chunk, format_seconds))
    peak = float(np.nanmax(done.peak_bytes, initial=0))
    if peak:
        heading = "peak of one task" if at_once == 1 else f"peak of {at_once} tasks at once"
        rows.append(_compare(heading, plan.peak_bytes * at_once, peak, format_bytes))
    return tuple(rows)


def _compare(
    heading: str, predicted: float, measured: float, show: Callable[[float], str]
) -> Compared:
    factor = measured / predicted if predicted else None
    return Compared(heading, show(predicted), show(measured), factor)
