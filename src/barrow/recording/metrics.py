"""The numbers of a record: one flat dictionary, and a table with a row for each step.

Derived from the tables alone, so they can be had of a run that was killed as well.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from barrow.model.plan import Plan
from barrow.recording.accounting import STATES, Observed, account
from barrow.recording.own_metrics import measure_own, measure_own_steps

if TYPE_CHECKING:
    import pandas

    from barrow.recording.reading import Record

_BUSY = ("compute", "transfer", "spill")


def measure(record: "Record") -> dict[str, Any]:
    """Return the numbers of a program that was watched, or of a run of barrow's own."""
    facts = record.facts
    began, ended = _bounds(record)
    if facts.get("kind") != "watch":
        return measure_own(record, began, ended)
    tasks, processes = record.table("dask_task"), record.table("process")
    wall = ended - began
    workers = processes[processes["threads"].fillna(0) > 0]
    seconds = account(_observe(tasks, workers, ended), began, ended)
    held = sum(seconds.values())
    slots = held / wall if wall else 0.0
    memory = _measure_memory(record, workers["name"])
    use = _measure_use(record, began)
    cpu = facts.get("cpu_seconds", use["cpu_seconds"])
    outcomes = tasks["outcome"].value_counts()
    cores = min(slots, facts.get("machine", {}).get("cores") or slots)
    return {
        "status": record.status,
        "tasks": len(tasks),
        **{f"tasks_{name}": int(outcomes.get(name, 0)) for name in ("done", "failed", "lost")},
        "steps": int(tasks["step"].nunique()),
        "workers": len(workers),
        "slots": round(slots),
        "wall_seconds": wall,
        "cpu_seconds": cpu,
        "task_seconds": float((tasks["ended"] - tasks["started"]).sum()),
        "held_seconds": held,
        **{f"{state}_seconds": seconds[state] for state in STATES},
        "result_bytes": int(tasks["result_bytes"].sum()),
        "received_bytes": int(tasks["received_bytes"].sum()),
        "spilled_bytes": memory["spilled_bytes"],
        "disk_read_bytes": use["disk_read_bytes"],
        "disk_written_bytes": use["disk_written_bytes"],
        "peak_bytes": max(int(facts.get("peak_bytes", 0)), memory["peak_worker_bytes"]),
        "peak_worker_bytes": memory["peak_worker_bytes"],
        "peak_client_bytes": memory["peak_client_bytes"],
        "efficiency": cpu / (cores * wall) if cores and wall else 0.0,
        "tasks_per_second": len(tasks) / wall if wall else 0.0,
        "result_bytes_per_second": float(tasks["result_bytes"].sum()) / wall if wall else 0.0,
    }


def measure_steps(record: "Record") -> "pandas.DataFrame":
    """Return a row for each step: tasks, seconds and bytes."""
    import pandas

    if record.facts.get("kind") != "watch":
        return measure_own_steps(record)
    tasks = record.table("dask_task")
    frame = tasks.assign(
        seconds=tasks["ended"] - tasks["started"],
        wait_seconds=(tasks["started"] - tasks["ready"]).clip(lower=0),
        is_done=tasks["outcome"] == "done",
    )
    steps = frame.groupby("step").agg(
        tasks=("id", "size"),
        done=("is_done", "sum"),
        first=("started", "min"),
        last=("ended", "max"),
        task_seconds=("seconds", "sum"),
        compute_seconds=("compute_seconds", "sum"),
        transfer_seconds=("send_seconds", "sum"),
        spill_seconds=("spill_seconds", "sum"),
        wait_seconds=("wait_seconds", "sum"),
        received_bytes=("received_bytes", "sum"),
        result_bytes=("result_bytes", "sum"),
        median_seconds=("compute_seconds", "median"),
        longest_seconds=("compute_seconds", "max"),
    )
    cpu = cpu_by_step(record.facts)
    steps["wall_seconds"] = steps["last"] - steps["first"]
    steps["cpu_seconds"] = pandas.Series(
        [cpu.get(str(name), np.nan) for name in steps.index], index=steps.index, dtype=float
    )
    peaks = _peaks_by_step(tasks, record)
    steps["peak_worker_bytes"] = pandas.Series(peaks, dtype=float).reindex(steps.index)
    steps["tasks_per_second"] = steps["tasks"] / steps["wall_seconds"].clip(lower=1e-9)
    return steps.drop(columns=["first", "last"]).sort_values("task_seconds", ascending=False)


def _bounds(record: "Record") -> tuple[float, float]:
    facts = record.facts
    stages = facts.get("stages") or [facts]
    began = float(stages[0]["began"])
    if "ended" in facts:
        return began, float(facts["ended"])
    latest = record.query(
        "select max(t) as t from (select max(time) as t from sample "
        "union all select max(ended) from dask_task union all select max(started) from task)"
    )["t"][0]
    if record.status == "running":
        return began, time.time()
    return began, float(latest) if latest is not None else began


def _observe(tasks: "pandas.DataFrame", workers: "pandas.DataFrame", ended: float) -> Observed:
    stays = [
        (joined, ended if np.isnan(left) else left)
        for joined, left, threads in zip(
            workers["joined"], workers["left"].astype(float), workers["threads"], strict=True
        )
        for _ in range(int(threads))
    ]
    ran = tasks[tasks["compute_seconds"] > 0]
    first = ran["ended"] - ran["compute_seconds"]
    # Inputs come before the computation: first those from other workers, then those from disk.
    unspilled = first - ran["spill_seconds"]
    ready = ran["ready"].fillna(ran["started"])
    return Observed(
        slots=np.array(stays, float).reshape(-1, 2),
        compute=_pairs(first, ran["ended"]),
        transfer=_pairs(unspilled - ran["send_seconds"], unspilled),
        spill=_pairs(unspilled, first),
        waiting=_pairs(np.minimum(ready, first), first),
    )


def _pairs(begin: Any, end: Any) -> np.ndarray:
    return np.column_stack([np.asarray(begin, float), np.asarray(end, float)]).reshape(-1, 2)


def _measure_memory(record: "Record", workers: Any) -> dict[str, int]:
    peaks = record.query(
        "select process, max(rss_bytes) as rss, max(spilled_bytes) as spilled from sample "
        "group by process"
    ).set_index("process")
    client = record.query("select name from process where kind = 'client'")["name"]
    return {
        "peak_worker_bytes": _largest(peaks["rss"], workers),
        "peak_client_bytes": _largest(peaks["rss"], client),
        "spilled_bytes": _largest(peaks["spilled"], workers),
    }


def _largest(values: "pandas.Series", names: Any) -> int:
    found = values.reindex(names).max()
    return 0 if found is None or np.isnan(found) else int(found)


def _measure_use(record: "Record", began: float) -> dict[str, Any]:
    """Return what all processes used: counters at their end, less those at their begin."""
    names = ("cpu_seconds", "disk_read_bytes", "disk_written_bytes")
    # A process that was there before the run had used something already.
    parts = [
        f"max({name}) - case when min(time) < {began + 0.3} then min({name}) else 0 end as {name}"
        for name in names
    ]
    sums = record.query(f"select {', '.join(parts)} from sample group by process").sum()
    return {n: float(sums[n]) if n == "cpu_seconds" else int(sums[n]) for n in names}


def cpu_by_step(facts: Mapping[str, Any]) -> dict[str, float]:
    """Return the CPU seconds of each step, as Dask's workers have measured them."""
    found: dict[str, float] = {}
    for name, activity in facts.items():
        if not name.startswith("activity "):
            continue
        for key, value in activity.items():
            kind, _, rest = key.partition(" | ")
            step, _, what = rest.partition(" | ")
            if kind == "execute" and what == "thread-cpu | seconds":
                found[step] = found.get(step, 0.0) + value
    return found


def _peaks_by_step(tasks: "pandas.DataFrame", record: "Record") -> dict[str, float]:
    """Return the most that a process held while a task of each step ran in it."""
    samples = record.query("select time, process, rss_bytes from sample order by time")
    found: dict[str, float] = {}
    for worker, ran in tasks.groupby("worker"):
        own = samples[samples["process"] == worker]
        if own.empty:
            continue
        times, held = own["time"].to_numpy(), own["rss_bytes"].to_numpy()
        first = np.searchsorted(times, ran["started"].to_numpy())
        last = np.searchsorted(times, ran["ended"].to_numpy(), side="right")
        for step, a, b in zip(ran["step"], first, last, strict=True):
            # A short task falls between two samples: the next one stands for it.
            most = float(held[a : max(b, a + 1)].max(initial=0))
            found[step] = max(found.get(step, 0.0), most)
    return found


def compare(plan: Plan, metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return what a run took, by the names under which a plan shows it."""
    chunks = metrics["chunks"]
    spent = sum(metrics[name] for name in ("read_seconds", "compute_seconds", "write_seconds"))
    measured = {
        "wall_seconds": metrics["wall_seconds"],
        "task_seconds": spent / max(1, chunks),
        "chunks": chunks,
        "chunks_found": metrics["chunks_found"],
        "probing_seconds": plan.cost.probing_seconds,
    }
    peaks = ("peak_task_bytes", "peak_resident_bytes")
    name = next((name for name in peaks if metrics.get(name)), None)
    return measured if name is None else {**measured, name: metrics[name]}
