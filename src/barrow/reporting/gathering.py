"""From a record to what a report says: tables in, content out; no files, no clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from barrow.model.facts import name_program, read_plan
from barrow.model.finding import Finding
from barrow.model.plan import Plan
from barrow.reporting.content import Content, Memory, Prediction, Row, Status
from barrow.reporting.happenings import (
    advise,
    list_events,
    list_logs,
    list_problems,
    list_skipped,
)
from barrow.reporting.headline import write_headline
from barrow.reporting.memory import draw_memory
from barrow.reporting.prediction import compare_with_plan
from barrow.reporting.processes import Processes
from barrow.reporting.steps import list_spans, list_steps
from barrow.reporting.surroundings import (
    flatten,
    list_machine,
    list_plan,
    tell_how_to_repeat,
)
from barrow.reporting.tables import Once, Tables, numbers
from barrow.reporting.tasks import PHASES, Tasks, read_tasks
from barrow.reporting.timeline import draw_timeline
from barrow.reporting.words import in_order
from barrow.units import format_bytes, format_count, format_seconds

MOST_ROWS = 100
"""Of a table in a report: one that nobody reads to its end says nothing."""


def gather(
    record: Tables, *, findings: Sequence[Finding] = (), is_alive: bool | None = None
) -> Content:
    """Return what a report says about a run.

    Parameters
    ----------
    findings
        What the doctor says, the most important first.
    is_alive
        Whether the process of a run without an end still runs; None if nobody knows.
    """
    return _Gathering(Once(record), tuple(findings), is_alive).content()


@dataclass(frozen=True)
class _Gathering:
    """One record on its way to a report: each fact is derived once."""

    record: Tables
    findings: tuple[Finding, ...]
    is_alive: bool | None

    def content(self) -> Content:
        """Return all of it."""
        left_out: list[str] = []

        def first(rows: Sequence[Any], noun: str) -> tuple[Any, ...]:
            if len(rows) > MOST_ROWS:
                left_out.append(
                    f"Of {format_count(len(rows), noun)} the table shows {MOST_ROWS}; all of "
                    "them are in record.sqlite."
                )
            return tuple(rows[:MOST_ROWS])

        facts, tasks = self.record.facts, self.tasks
        timeline = draw_timeline(tasks, self.lane_of, self.lanes, self.began)
        prediction = self.prediction
        steps = first(list_steps(tasks), "step")
        left_out += self._say_what_is_summed(timeline.tasks, prediction)
        if self.memory.marks_left_out:
            left_out.append(
                f"The figure of memory leaves out {self.memory.marks_left_out:,} marks, "
                "the least important ones."
            )
        return Content(
            name=self.name,
            kind=str(facts.get("kind", "run")),
            status=self.status,
            began=self.began,
            seconds=self.seconds,
            headline=self._headline(),
            tiles=tuple(self._tiles()),
            problems=tuple(self.problems),
            findings=self.findings,
            prediction=prediction,
            timeline=timeline,
            memory=self.memory,
            steps=steps,
            spans=first(list_spans(self.record, self.began, self.last), "span"),
            metrics=tuple(self._metrics()),
            events=first(list_events(self.record, self.processes, self.began), "event"),
            skipped=first(self.skipped, "chunk without an answer"),
            logs=first(list_logs(self.record, self.processes, self.began), "line of the log"),
            plan=list_plan(self.plan) if self.plan else (),
            machine=list_machine(facts),
            versions={name: str(v) for name, v in dict(facts.get("versions") or {}).items()},
            settings=dict(flatten(dict(facts.get("settings") or {}))),
            reproduce=tell_how_to_repeat(facts, self.plan),
            left_out=tuple(left_out),
        )

    @cached_property
    def plan(self) -> Plan | None:
        return read_plan(self.record.facts)

    @cached_property
    def processes(self) -> Processes:
        return Processes.of(self.record)

    @cached_property
    def name(self) -> str:
        return name_program(self.record.facts) if self.plan is None else self.plan.name

    @cached_property
    def tasks(self) -> Tasks:
        step = " → ".join(self.plan.steps) if self.plan else self.name
        return read_tasks(self.record, step, float(self.record.facts.get("began") or 0))

    @cached_property
    def stages(self) -> list[dict[str, Any]]:
        """The stages before this one, of a pipeline."""
        return list(self.record.facts.get("stages") or [])

    @cached_property
    def began(self) -> float:
        facts = self.record.facts
        if self.stages:
            return min(float(stage["began"]) for stage in self.stages)
        if facts.get("began"):
            return float(facts["began"])
        return float(np.min(self.tasks.started, initial=np.inf)) if len(self.tasks) else 0.0

    @cached_property
    def last(self) -> float:
        """When the run ended; for one without an end, when it was last heard of."""
        ended = self._ended
        if ended is not None:
            return ended
        moments = [self.began]
        if len(self.tasks):
            moments.append(float(self.tasks.ended.max()))
        for table in ("event", "sample"):
            moments += self.record.columns(table)["time"][-1:]
        return max(moments)

    @cached_property
    def _ended(self) -> float | None:
        ended = self.record.facts.get("ended")
        # A run that was taken up again carries the end of the one before it.
        return float(ended) if ended and float(ended) >= self.began else None

    @property
    def seconds(self) -> float:
        return max(0.0, self.last - self.began)

    @cached_property
    def status(self) -> Status:
        if self._ended is None:
            return "unknown" if self.is_alive is None else "running" if self.is_alive else "killed"
        known: dict[str, Status] = {s: s for s in ("done", "failed", "interrupted", "killed")}  # type: ignore[misc]
        return known.get(str(self.record.facts.get("status")), "unknown")

    @cached_property
    def _workplaces(self) -> list[tuple[str, str]]:
        """Process and thread of each task; one whose thread nobody knows goes to the first."""
        places = list(zip(self.tasks.process, self.tasks.thread, strict=True))
        first: dict[str, str] = {}
        for process, thread in sorted(set(places)):
            if thread:
                first.setdefault(process, thread)
        return [(process, thread or first.get(process, "")) for process, thread in places]

    @cached_property
    def _lane_numbers(self) -> dict[tuple[str, str], int]:
        """Threads of a process side by side, processes in the order of their names."""
        ordered = sorted(
            set(self._workplaces),
            key=lambda place: (in_order(self.processes.label(place[0])), *map(in_order, place)),
        )
        return {place: number for number, place in enumerate(ordered)}

    @cached_property
    def lane_of(self) -> np.ndarray:
        return np.array([self._lane_numbers[place] for place in self._workplaces], int)

    @cached_property
    def lanes(self) -> tuple[str, ...]:
        names = []
        of_process = [process for process, _ in self._lane_numbers]
        for number, process in enumerate(of_process):
            name = self.processes.label(process)
            if of_process.count(process) > 1:
                name += f" · {number - of_process.index(process) + 1}"
            names.append(name)
        return tuple(names)

    @cached_property
    def memory(self) -> Memory:
        return draw_memory(self.record, self.tasks, self.processes, self.began, self.last)

    @cached_property
    def peak_bytes(self) -> float:
        """Most that one process held, as far as anybody looked."""
        held = [max(series.bytes) for series in self.memory.series if series.bytes]
        resident = self.tasks.resident_bytes
        if len(resident) and not np.isnan(resident).all():
            held.append(float(np.nanmax(resident)))
        return max(held, default=0.0)

    @cached_property
    def prediction(self) -> Prediction | None:
        if self.plan is None or not len(self.tasks):
            return None
        own_began = float(self.record.facts.get("began") or self.began)
        return compare_with_plan(self.plan, self.tasks, max(0.0, self.last - own_began))

    @cached_property
    def skipped(self) -> list[Row]:
        return list_skipped(self.record)

    @cached_property
    def problems(self) -> list[str]:
        return list_problems(self.record, self.tasks, self.processes, self.began)

    @property
    def _chunks_done(self) -> int:
        """Chunks that have their answer, those of an earlier run included."""
        return len(self.record.columns("task")["chunk"])

    def _describe_work(self) -> str:
        """Return what was done by whom: ``12 chunks on 2 workers``."""
        if self.plan is not None:
            chunks = format_count(self.plan.n_chunks, "chunk")
            is_whole = self._chunks_done >= self.plan.n_chunks
            work = chunks if is_whole else f"{self._chunks_done:,} of {chunks}"
        else:
            work = format_count(len(self.tasks), "task")
        if self.stages:
            work += f", the last of {format_count(len(self.stages) + 1, 'stage')},"
        n_processes = len(set(self.tasks.process))
        if n_processes > 1 or self.processes.workers:
            return f"{work} on {format_count(max(n_processes, self.processes.workers), 'worker')}"
        return f"{work} on {format_count(len(self.lanes), 'thread')}" if self.lanes else work

    def _headline(self) -> str:
        advice = advise(
            self.status,
            can_resume=self.plan is not None and self.plan.result == "store",
            done=self._chunks_done,
            planned=self.plan.n_chunks if self.plan else 0,
            skipped=len(self.skipped),
        )
        return write_headline(
            name=self.name,
            status=self.status,
            time=format_seconds(self.seconds),
            work=self._describe_work(),
            memory=format_bytes(self.peak_bytes) if self.peak_bytes else "",
            problems=self.problems,
            findings=self.findings,
            advice=advice,
        )

    def _tiles(self) -> list[Row]:
        tiles = [Row("time", format_seconds(self.seconds), self.seconds)]
        tiles.append(
            Row("chunks", f"{self._chunks_done:,}", self._chunks_done)
            if self.plan is not None
            else Row("tasks", f"{len(self.tasks):,}", len(self.tasks))
        )
        if self.peak_bytes:
            tiles.append(Row("largest process", format_bytes(self.peak_bytes), self.peak_bytes))
        if len(self.tasks) and self.seconds:
            tiles.append(Row("workers busy", f"{self._busy_share:.0%}", self._busy_share))
        return tiles

    @property
    def _busy_share(self) -> float:
        room = self.seconds * max(1, len(self.lanes))
        return min(1.0, float(self.tasks.seconds.sum()) / room) if room else 0.0

    def _metrics(self) -> list[Row]:
        tasks = self.tasks
        found = [
            Row("time of the run", format_seconds(self.seconds), self.seconds),
            Row(
                "calls of the function" if self.plan is not None else "tasks",
                f"{len(tasks):,}",
                len(tasks),
            ),
            Row("threads that worked", f"{len(self.lanes):,}", len(self.lanes)),
        ]
        if not len(tasks):
            return found
        if self.seconds:
            found.append(
                Row(
                    "share of their time spent in tasks",
                    f"{self._busy_share:.0%}",
                    self._busy_share,
                )
            )

        def add(heading: str, values: np.ndarray, show: Callable[[float], str], most: bool) -> None:
            if len(values) and not np.isnan(values).all():
                value = float(np.nanmax(values) if most else np.nansum(values))
                if value:
                    found.append(Row(heading, show(value), value))

        phases = PHASES if tasks.has_phases else ("waiting for data", "computing", "")
        for number, phase in enumerate(phases):
            add(f"{phase}, all tasks", tasks.phases[:, number], format_seconds, most=False)
        add("CPU, all tasks", tasks.cpu_seconds, format_seconds, most=False)
        read, written = ("read", "written") if tasks.has_phases else ("received", "results")
        add(f"bytes {read}", tasks.read_bytes, format_bytes, most=False)
        add(f"bytes {written}", tasks.written_bytes, format_bytes, most=False)
        add("largest peak of a task", tasks.peak_bytes, format_bytes, most=True)
        if self.peak_bytes:
            found.append(Row("largest process", format_bytes(self.peak_bytes), self.peak_bytes))
        spilled = numbers(self.record.columns("sample")["spilled_bytes"])
        add("most that lay on disk for want of memory", spilled, format_bytes, most=True)
        earlier = self._chunks_done - int(tasks.cells[tasks.first_chunk >= 0].sum())
        if self.plan is not None and earlier > 0:
            found.append(Row("chunks taken over from an earlier run", f"{earlier:,}", earlier))
        return found

    def _say_what_is_summed(self, drawn: Any, prediction: Prediction | None) -> list[str]:
        said = []
        shown, total = len(drawn.get("lane", ())), len(self.tasks)
        if shown < total:
            said.append(
                f"The timeline draws {shown:,} of {total:,} tasks one by one: failures and the "
                "longest. The others are put together; their number and how busy they kept a "
                "worker are shown."
            )
        pairs = prediction and (prediction.peak_bytes or prediction.seconds)
        if pairs and len(pairs.measured) < pairs.total:
            said.append(
                f"The figures of predictions show {len(pairs.measured):,} of {pairs.total:,} "
                "tasks: those predicted worst, the largest, and every so many of the rest."
            )
        if self.memory.others:
            said.append(
                f"The figure of memory shows {len(self.memory.series) - 1} processes, the largest; "
                f"of {self.memory.others:,} others only the largest at each moment."
            )
        return said
