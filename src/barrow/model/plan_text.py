"""How a plan is shown to a person: rows of text, before and after its run."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from barrow.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from barrow.model.plan import Plan

# No run takes its predicted time to the second: other programs, caches, the disk.
LEAST_SPREAD = 0.3


class Row(NamedTuple):
    """One line about a plan."""

    heading: str
    text: str
    measured: str = ""
    """What the run really took; empty before it, and where there is nothing to compare."""


def list_rows(plan: "Plan", reader: "Plan | None" = None) -> list[Row]:
    """Return the rows of one stage; ``reader`` is the stage that reads its result."""
    seen = plan.measured
    rows = [
        Row("step", " → ".join(plan.steps)),
        Row("source", plan.source),
        Row("chunks", f"{plan.n_chunks:,} of {_sizes(plan.grid.chunk)}", _count(seen)),
    ]
    if plan.strides:
        rows.append(Row("", f"walked in blocks of {_sizes(plan.strides)}"))
    rows.append(Row("runs", _where(plan)))
    if plan.result != "value":
        text = f"{np.dtype(plan.dtype)}, {format_bytes(plan.result_bytes)}, {_place(plan)}"
        rows.append(Row("result" if reader is None else "between", text))
    if reader is not None and plan.result == "store":
        rows += _list_exchange(plan, reader)
    if plan.seconds or seen:
        predicted = _range(plan.seconds, plan.cost.spread) if plan.seconds else "not predicted"
        rows.append(Row("time", predicted, _seconds(seen, "wall_seconds")))
    if seen:
        task = format_seconds(plan.task_seconds) if plan.seconds else "not predicted"
        rows.append(Row("one task", f"about {task}" if plan.seconds else task, _mean(seen)))
    rows += _list_memory(plan)
    if seen:
        rows.append(Row("probing", "", _seconds(seen, "probing_seconds")))
    rows += [Row("why" if not index else "", text) for index, text in enumerate(plan.reasons)]
    return rows


def format_text(plan: "Plan") -> str:
    """Return a plan as lines for a terminal."""
    lines = [_title(plan)]
    for heading, rows in _sections(plan):
        lines += [heading] if heading else []
        lines += _format_rows(rows)
    return "\n".join(lines)


def format_html(plan: "Plan") -> str:
    """Return a plan as a table for a notebook."""
    body = ""
    for heading, rows in _sections(plan):
        width = 3 if any(row.measured for row in rows) else 2
        if heading:
            body += f"<tr><th colspan='{width}' style='text-align:left'>{escape(heading)}</th></tr>"
        if width == 3:
            body += "<tr><th></th><th>predicted</th><th>measured</th></tr>"
        for row in rows:
            cells = "".join(
                f"<td style='text-align:left'>{escape(text)}</td>" for text in row[1:width]
            )
            body += f"<tr><th style='text-align:left'>{escape(row.heading)}</th>{cells}</tr>"
    return f"<table><caption>{escape(_title(plan))}</caption>{body}</table>"


def _title(plan: "Plan") -> str:
    stages = f" in {len(plan.stages)} stages" if plan.before else ""
    return f"Plan for '{plan.name}'{stages}"


def _sections(plan: "Plan") -> list[tuple[str, list[Row]]]:
    """Return the stages with their headings, and a line for all of them together."""
    if not plan.before:
        return [("", list_rows(plan))]
    stages = plan.stages
    readers = [*stages[1:], None]
    found = [
        (f"{number}. {' → '.join(stage.steps)}", list_rows(stage, reader))
        for number, (stage, reader) in enumerate(zip(stages, readers, strict=True), start=1)
    ]
    if plan.total_seconds or plan.measured:
        spread = max(stage.cost.spread for stage in stages)
        taken = sum(stage.measured.get("wall_seconds", 0.0) for stage in stages)
        text = _range(plan.total_seconds, spread) if plan.total_seconds else "not predicted"
        total = Row("time", text, format_seconds(taken) if plan.measured else "")
        found.append(("All stages", [total]))
    return found


def _format_rows(rows: Sequence[Row]) -> list[str]:
    compared = [row for row in rows if row.measured]
    left = max(len(row.heading) for row in rows)
    if not compared:
        return [f"{row.heading:<{left}}  {row.text}" for row in rows]
    middle = max(len("predicted"), *(len(row.text) for row in compared))
    lines = [f"{'':<{left}}  {'predicted':<{middle}}  measured"]
    for row in rows:
        text = f"{row.text:<{middle}}  {row.measured}" if row.measured else row.text
        lines.append(f"{row.heading:<{left}}  {text}")
    return lines


def _list_memory(plan: "Plan") -> list[Row]:
    text = f"about {format_bytes(plan.peak_bytes)} for one task, at most "
    text += format_bytes(plan.peak_bound_bytes)
    share = plan.peak_bound_bytes / max(1, plan.budget_bytes)
    of_budget = f"{share:.1%} of the {format_bytes(plan.budget_bytes)} it may use"
    if not plan.measured:
        return [Row("peak", f"{text}: {of_budget}")]
    return [Row("peak", text, _peak(plan.measured)), Row("", of_budget)]


def _list_exchange(plan: "Plan", reader: "Plan") -> list[Row]:
    """Say what it costs to store a result and to read it again."""
    size = plan.result_bytes
    writing = size * plan.cost.write_seconds_per_byte
    writing += plan.n_chunks * plan.cost.write_seconds_per_chunk
    reading = size * reader.cost.read_seconds_per_byte
    if not writing and not reading:
        return []
    text = f"takes {format_seconds(writing)} of CPU to write, {format_seconds(reading)} to read"
    return [Row("", text)]


def _sizes(sizes: Mapping[str, int]) -> str:
    return " × ".join(f"{dim} {size}" for dim, size in sizes.items()) or "everything"


def _where(plan: "Plan") -> str:
    if plan.engine == "inline":
        return "in this process, one chunk after the other"
    if plan.engine == "threads":
        return f"in this process, {format_count(plan.threads, 'thread')}"
    kind = "local worker" if plan.engine == "processes" else "Dask worker"
    where = f"on {format_count(plan.workers, kind)} with {format_count(plan.threads, 'thread')}"
    return f"{where}, {format_count(plan.at_once, 'task')} at once" if plan.at_once else where


def _place(plan: "Plan") -> str:
    if plan.result == "memory":
        return "in memory"
    stored = " × ".join(map(str, plan.stored_chunks.values()))
    return f"in a Zarr store, chunks of {stored}"


def _range(seconds: float, spread: float) -> str:
    """Return a predicted time with the range in which it may lie.

    Examples
    --------
    >>> _range(13.0, spread=0.0)
    'about 13.0 s (10.0 s to 16.9 s)'
    """
    factor = 1 + max(LEAST_SPREAD, spread)
    low, high = format_seconds(seconds / factor), format_seconds(seconds * factor)
    return f"about {format_seconds(seconds)} ({low} to {high})"


def _count(seen: Mapping[str, float]) -> str:
    if "chunks" not in seen:
        return ""
    found = int(seen.get("chunks_found", 0))
    return f"{int(seen['chunks']):,}" + (f", {found:,} of them found" if found else "")


def _seconds(seen: Mapping[str, float], name: str) -> str:
    return format_seconds(seen[name]) if name in seen else ""


def _mean(seen: Mapping[str, float]) -> str:
    return f"{format_seconds(seen['task_seconds'])} on average" if "task_seconds" in seen else ""


def _peak(seen: Mapping[str, float]) -> str:
    if "peak_task_bytes" in seen:
        return format_bytes(seen["peak_task_bytes"])
    size = seen.get("peak_resident_bytes")
    return "" if size is None else f"{format_bytes(size)}, the largest process with all it holds"
