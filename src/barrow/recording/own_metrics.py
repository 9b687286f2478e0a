"""The numbers of runs of barrow's own: rates, several stages as one, and what a record tells."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from barrow.model.facts import read_plan

if TYPE_CHECKING:
    import pandas

    from barrow.recording.reading import Record

_SPENT = ("read_seconds", "compute_seconds", "write_seconds")
_LARGEST = ("workers", "threads")
_LAST = ("items",)
"""Numbers of a pipeline that are those of its last stage."""


def with_rates(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers with those that follow from them.

    Examples
    --------
    >>> numbers = {
    ...     "items": 100, "read_bytes": 80, "written_bytes": 40, "process_cpu_seconds": 3.0,
    ...     "read_seconds": 1.0, "compute_seconds": 2.0, "write_seconds": 0.5,
    ...     "held_seconds": 4.0, "wall_seconds": 2.0,
    ... }
    >>> found = with_rates(numbers)
    >>> found["task_seconds"], found["efficiency"], found["items_per_second"]
    (3.5, 0.75, 50.0)
    """
    wall = max(1e-9, metrics["wall_seconds"])
    held = max(1e-9, metrics["held_seconds"])
    return {
        **metrics,
        "task_seconds": sum(metrics[name] for name in _SPENT),
        "efficiency": metrics["process_cpu_seconds"] / held,
        "read_bytes_per_second": metrics["read_bytes"] / wall,
        "written_bytes_per_second": metrics["written_bytes"] / wall,
        "items_per_second": metrics["items"] / wall,
        "items_per_core_second": metrics["items"] / held,
    }


def join_stages(stages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the numbers of a pipeline from those of its stages, which ran one after the other.

    What was joined before can be joined with what came after.

    Examples
    --------
    >>> one = {
    ...     "chunks": 2, "items": 100, "read_bytes": 80, "written_bytes": 40,
    ...     "process_cpu_seconds": 3.0,
    ...     "read_seconds": 1.0, "compute_seconds": 2.0, "write_seconds": 0.5, "held_seconds": 4.0,
    ...     "wall_seconds": 2.0, "peak_bytes": 7, "engine": "inline",
    ... }
    >>> both = join_stages([one, {**one, "items": 10, "peak_bytes": 5, "engine": "threads"}])
    >>> both["chunks"], both["items"], both["wall_seconds"], both["peak_bytes"], both["engine"]
    (4, 10, 4.0, 7, 'inline, threads')
    """
    joined: dict[str, Any] = {}
    for name, last in stages[-1].items():
        values = [stage[name] for stage in stages if name in stage]
        if isinstance(last, str):
            joined[name] = ", ".join(dict.fromkeys(", ".join(values).split(", ")))
        elif name in _LAST:
            joined[name] = last
        elif name.startswith("peak_") or name in _LARGEST:
            joined[name] = max(values)
        else:
            joined[name] = sum(values)
    return with_rates(joined)


def measure_own(record: "Record", began: float, ended: float) -> dict[str, Any]:
    """Return the numbers of a run from its tables, also of one that did not end."""
    tasks = _list_tasks(record)
    plan = read_plan(record.facts)
    samples = record.query(
        "select max(rss_bytes) as rss, max(cpu_seconds) - min(cpu_seconds) as cpu from sample "
        "group by process"
    )
    peaks = samples["rss"]
    wall = ended - began
    return with_rates(
        {
            "status": record.status,
            "chunks": len(tasks),
            "chunks_planned": 0 if plan is None else sum(s.n_chunks for s in plan.stages),
            "process_cpu_seconds": float(max(samples["cpu"].sum(), tasks["cpu_seconds"].sum())),
            "items": 0 if plan is None else prod(plan.lengths.values()),
            **{name: float(tasks[name].sum()) for name in (*_SPENT, "cpu_seconds")},
            **{name: int(tasks[name].sum()) for name in ("read_bytes", "written_bytes")},
            "held_seconds": wall * (1 if plan is None else plan.slots),
            "wall_seconds": wall,
            "peak_task_bytes": _largest(tasks["peak_bytes"]),
            "peak_resident_bytes": max(_largest(tasks["resident_bytes"]), _largest(peaks)),
            "peak_bytes": max(int(record.facts.get("peak_bytes", 0)), _largest(peaks)),
        }
    )


def measure_own_steps(record: "Record") -> "pandas.DataFrame":
    """Return a row for each stage of a run: chunks, seconds and bytes."""
    tasks = _list_tasks(record)
    tasks["seconds"] = tasks[[*_SPENT]].sum(axis=1)
    tasks["ended"] = tasks["started"] + tasks["seconds"] * tasks["cells"]
    steps = tasks.groupby("step", sort=False).agg(
        chunks=("chunk", "size"),
        first=("started", "min"),
        last=("ended", "max"),
        task_seconds=("seconds", "sum"),
        **{name: (name, "sum") for name in (*_SPENT, "cpu_seconds", "read_bytes", "written_bytes")},
        median_seconds=("seconds", "median"),
        longest_seconds=("seconds", "max"),
        peak_task_bytes=("peak_bytes", "max"),
        peak_resident_bytes=("resident_bytes", "max"),
    )
    steps["wall_seconds"] = steps["last"] - steps["first"]
    steps["chunks_per_second"] = steps["chunks"] / steps["wall_seconds"].clip(lower=1e-9)
    return steps.drop(columns=["first", "last"])


def _list_tasks(record: "Record") -> "pandas.DataFrame":
    """Return the chunks of all stages, with the name of the work of each, the first ones first."""
    import pandas

    plan = read_plan(record.facts)
    last = record.table("task").assign(step="" if plan is None else plan.name)
    before = record.table("stage_task").drop(columns="stage")
    tasks = pandas.concat([before, last]) if len(before) else last
    return tasks.sort_values("started")


def _largest(values: "pandas.Series") -> int:
    return int(values.max()) if len(values) else 0
