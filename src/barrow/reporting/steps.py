"""The table of steps, and the named parts of a program."""

import numpy as np

from barrow.reporting.content import Quantiles, SpanRow, StepRow
from barrow.reporting.tables import Columns, Tables, numbers
from barrow.reporting.tasks import Tasks


def list_steps(tasks: Tasks) -> list[StepRow]:
    """Return a row for each step, the one that took longest first."""
    if not len(tasks):
        return []
    names, which = np.unique(np.array(tasks.step, object), return_inverse=True)
    # One sort instead of a mask for each of many steps.
    order = np.argsort(which, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(which))[:-1])
    rows = [_describe(str(name), tasks, part) for name, part in zip(names, parts, strict=True)]
    return sorted(rows, key=lambda row: -row.total_seconds)


def list_spans(record: Tables, began: float, last: float) -> list[SpanRow]:
    """Return the spans as a tree, in the order of their beginning."""
    spans = record.columns("span")
    if not spans["id"]:
        return []
    own = _tasks_of_spans(record.columns("dask_task"))
    row_of = {number: row for row, number in enumerate(spans["id"])}
    children: dict[int | None, list[int]] = {}
    for number, parent in zip(spans["id"], spans["parent"], strict=True):
        children.setdefault(parent if parent in row_of else None, []).append(number)
    rows: list[SpanRow] = []

    def walk(number: int, depth: int) -> tuple[int, float]:
        row = row_of[number]
        at = len(rows)
        count, seconds = own.get(number, (0, 0.0))
        inner = sorted(children.get(number, ()), key=lambda n: spans["started"][row_of[n]])
        for child in inner:
            more = walk(child, depth + 1)
            count, seconds = count + more[0], seconds + more[1]
        started, ended = spans["started"][row], spans["ended"][row]
        name, has_ended = str(spans["name"][row]), ended is not None
        length = max(0.0, (ended if has_ended else last) - started)
        rows.insert(at, SpanRow(name, depth, started - began, length, has_ended, count, seconds))
        return count, seconds

    for number in sorted(children.get(None, ()), key=lambda n: spans["started"][row_of[n]]):
        walk(number, 0)
    return rows


def _describe(name: str, tasks: Tasks, part: np.ndarray) -> StepRow:
    done = part[tasks.is_done[part]]
    spent = tasks.phases[part].sum(axis=0)
    return StepRow(
        name=name,
        tasks=int(tasks.cells[part].sum()),
        failed=len(part) - len(done),
        total_seconds=float(tasks.seconds[part].sum()),
        computing_share=float(spent[1] / max(spent.sum(), 1e-12)),
        seconds=_spread(tasks.seconds[done] / tasks.cells[done]),
        peak_bytes=_spread(tasks.peak_bytes[done]),
    )


def _spread(values: np.ndarray) -> Quantiles | None:
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    return Quantiles(*np.quantile(values, (0, 0.5, 0.95, 1)).tolist())


def _tasks_of_spans(rows: Columns) -> dict[int, tuple[int, float]]:
    """Return number and seconds of the tasks made in each span."""
    found: dict[int, tuple[int, float]] = {}
    seconds = numbers(rows["ended"]) - numbers(rows["started"])
    for span, spent in zip(rows["span"], seconds.tolist(), strict=True):
        if span is not None:
            count, total = found.get(span, (0, 0.0))
            found[span] = count + 1, total + spent
    return found
