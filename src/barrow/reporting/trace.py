"""All tasks of a run as a trace for Perfetto or Chrome (``ui.perfetto.dev``).

Processes are workers, threads are theirs; tasks and spans are complete events, memory is
a counter, events are instants. Nothing is left out.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from barrow.model.facts import name_program, read_plan
from barrow.reporting.processes import Processes
from barrow.reporting.tables import Tables
from barrow.reporting.tasks import Tasks, read_tasks

PROGRAM = 1
"""Number of the process that stands for the program as a whole."""


def write_trace(record: Tables, file: IO[str]) -> int:
    """Write the trace event by event, and return how many there are."""
    count = 0
    file.write('{"displayTimeUnit":"ms","traceEvents":[')
    for event in list_events(record):
        file.write(",\n" if count else "\n")
        file.write(json.dumps(event, separators=(",", ":")))
        count += 1
    file.write("\n]}\n")
    return count


def list_events(record: Tables) -> Iterator[dict[str, Any]]:
    """Yield the events of a trace; times are microseconds since the run began."""
    facts = record.facts
    plan = read_plan(facts)
    name = plan.name if plan else name_program(facts)
    step = " → ".join(plan.steps) if plan else name
    tasks = read_tasks(record, step, float(facts.get("began") or 0))
    starts = [float(tasks.started.min())] if len(tasks) else []
    began = float(facts.get("began") or min(starts, default=0.0))
    processes = Processes.of(record)
    numbers: dict[str, int] = defaultdict(lambda: len(numbers) + PROGRAM + 1)
    yield _name("process_name", PROGRAM, 0, name)
    yield from _list_spans(record, began)
    yield from _list_tasks(tasks, processes, numbers, began)
    yield from _list_samples(record, numbers, began)
    yield from _list_instants(record, processes, numbers, began)
    for process, number in numbers.items():
        yield _name("process_name", number, 0, processes.label(process))


def _list_tasks(
    tasks: Tasks, processes: Processes, numbers: dict[str, int], began: float
) -> Iterator[dict[str, Any]]:
    threads: dict[tuple[int, str], int] = {}
    free: dict[tuple[int, int], int] = {}
    for i in np.argsort(tasks.started, kind="stable").tolist():
        pid = numbers[processes.find(tasks.process[i])]
        place = pid, tasks.thread[i]
        if place not in threads:
            threads[place] = 1 + sum(other == pid for other, _ in threads)
            yield _name("thread_name", pid, threads[place], tasks.thread[i] or "thread")
        tid = threads[place]
        # Events of one thread must not overlap by a rounded microsecond.
        start = max(_micro(tasks.started[i] - began), free.get((pid, tid), 0))
        end = max(start, _micro(tasks.ended[i] - began))
        free[pid, tid] = end
        arguments = {
            "task": tasks.label[i],
            "outcome": tasks.outcome[i],
            "compute_seconds": float(tasks.phases[i, 1]),
            "peak_bytes": _known(tasks.peak_bytes[i]),
            "cpu_seconds": _known(tasks.cpu_seconds[i]),
            "error": tasks.error[i] or None,
        }
        yield {
            "ph": "X",
            "name": tasks.step[i],
            "cat": "task",
            "pid": pid,
            "tid": tid,
            "ts": start,
            "dur": end - start,
            "args": {name: value for name, value in arguments.items() if value is not None},
        }


def _list_samples(
    record: Tables, numbers: dict[str, int], began: float
) -> Iterator[dict[str, Any]]:
    samples = record.columns("sample")
    names = ("time", "process", "rss_bytes", "managed_bytes", "spilled_bytes")
    for time, process, *sizes in zip(*(samples[name] for name in names), strict=True):
        held = dict(zip(("process", "managed", "spilled"), sizes, strict=True))
        yield {
            "ph": "C",
            "name": "memory (bytes)",
            "pid": numbers[process],
            "ts": _micro(time - began),
            "args": {name: size for name, size in held.items() if size is not None},
        }


def _list_instants(
    record: Tables, processes: Processes, numbers: dict[str, int], began: float
) -> Iterator[dict[str, Any]]:
    events = record.columns("event")
    for time, kind, message, details in zip(
        *(events[name] for name in ("time", "kind", "message", "details")), strict=True
    ):
        process = processes.named_in(details)
        yield {
            "ph": "i",
            "name": kind,
            "s": "p" if process else "g",
            "pid": numbers[process] if process else PROGRAM,
            "tid": 0,
            "ts": _micro(time - began),
            "args": {"message": message},
        }


def _list_spans(record: Tables, began: float) -> Iterator[dict[str, Any]]:
    spans = record.columns("span")
    for name, started, ended in zip(
        *(spans[column] for column in ("name", "started", "ended")), strict=True
    ):
        start = _micro(started - began)
        event = {"ph": "X", "name": name, "cat": "span", "pid": PROGRAM, "tid": 1, "ts": start}
        if ended is None:
            yield {**event, "ph": "B"}
        else:
            yield {**event, "dur": max(0, _micro(ended - began) - start)}


def _name(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def _micro(seconds: float) -> int:
    return max(0, round(float(seconds) * 1e6))


def _known(value: float) -> float | None:
    return float(value) if value == value else None
