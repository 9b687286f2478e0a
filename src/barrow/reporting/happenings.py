"""What happened on the way: events, chunks without an answer, warnings, and what was wrong."""

import json
from collections import Counter
from dataclasses import replace

from barrow.model.grid import format_ranges
from barrow.reporting.content import EventRow, Row, Status
from barrow.reporting.memory import ORDINARY
from barrow.reporting.processes import Processes
from barrow.reporting.tables import Tables
from barrow.reporting.tasks import Tasks
from barrow.units import format_count


def list_events(record: Tables, processes: Processes, began: float) -> list[EventRow]:
    """Return the events of this run, those of an earlier one that it took up left out.

    What happens in every run is told once, with its number.
    """
    events = record.columns("event")
    rows: list[EventRow] = []
    first: dict[str, int] = {}
    for time, kind, message, details in zip(
        *(events[name] for name in ("time", "kind", "message", "details")), strict=True
    ):
        if time < began - 1 or kind == "skipped":  # these have a table of their own
            continue
        if kind in ORDINARY and kind in first:
            at = first[kind]
            rows[at] = replace(rows[at], count=rows[at].count + 1)
            continue
        first.setdefault(kind, len(rows))
        rows.append(EventRow(time - began, kind, message, _label(processes, details)))
    return rows


def list_logs(record: Tables, processes: Processes, began: float) -> list[EventRow]:
    """Return warnings and errors; lines that say the same stand once, with their number."""
    logs = record.columns("log")
    counts: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], EventRow] = {}
    for time, process, level, logger, message in zip(
        *(logs[name] for name in ("time", "process", "level", "logger", "message")), strict=True
    ):
        if time < began - 1:
            continue
        same = level, logger, message
        counts[same] += 1
        label = processes.label(process) if process else ""
        first.setdefault(same, EventRow(time - began, level.lower(), f"{logger}: {message}", label))
    return [
        EventRow(row.time, row.kind, row.message, row.process, counts[same])
        for same, row in first.items()
    ]


def list_skipped(record: Tables) -> list[Row]:
    """Return the chunks that have no answer."""
    rows = record.columns("skipped")
    return [
        Row(
            f"chunk {chunk} of '{step}', {format_ranges(json.loads(ranges))}",
            f"tried {format_count(attempts, 'time')}: {reason}",
        )
        for step, chunk, ranges, reason, attempts in zip(
            *(rows[name] for name in ("step", "chunk", "ranges", "reason", "attempts")),
            strict=True,
        )
    ]


def list_problems(record: Tables, tasks: Tasks, processes: Processes, began: float) -> list[str]:
    """Return what was wrong, each in a few words."""
    found = Counter(_list_troubles(record, began))
    failed, lost = tasks.outcome.count("failed"), tasks.outcome.count("lost")
    said = [
        (len(record.columns("skipped")["chunk"]), "{} left out", "chunk"),
        (failed, "{} failed", "task"),
        (found["split"], "chunks were split for want of memory, {}", "time"),
        (len(processes.deaths), "{} died", "worker"),
        (lost, "{} lost with a worker", "task"),
        (0 if processes.deaths else found["lost"], "chunks were lost with a worker, {}", "time"),
        (found["recycled"], "{} leaked memory and had to be replaced", "worker"),
        (found["damaged"], "results of an earlier run were damaged, {}", "time"),
    ]
    return [text.format(format_count(n, noun)) for n, text, noun in said if n]


def advise(status: Status, *, can_resume: bool, done: int, planned: int, skipped: int) -> str:
    """Return the one thing to do, as far as the record alone can tell."""
    if status in ("killed", "interrupted", "failed", "unknown"):
        if can_resume and done:
            return (
                f"the same call again takes it up: {done:,} of {planned:,} chunks are done and stay"
            )
        return "start it again: nothing of it was kept"
    if skipped:
        return "see below what the function said about the chunks that were left out"
    return ""


def _list_troubles(record: Tables, began: float) -> list[str]:
    events = record.columns("event")
    return [
        kind
        for time, kind, details in zip(
            *(events[name] for name in ("time", "kind", "details")), strict=True
        )
        # A split is noted when it is made, with its error, and again when all parts are done.
        if time >= began - 1 and (kind != "split" or '"error"' in details)
    ]


def _label(processes: Processes, details: str) -> str:
    name = processes.named_in(details)
    return processes.label(name) if name else ""
