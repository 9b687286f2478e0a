"""Look at a record while it is written: a few quick questions, however long the run is."""

import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from barrow.model.facts import name_program, read_plan
from barrow.model.glance import Glance, ProcessGlance
from barrow.model.plan import Plan
from barrow.recording.reading import Record

RECENT_TASKS = 500
"""The last ones, from which the rate is taken."""
RECENT_SAMPLES = 4000
MOST_NOTES = 6
_ORDINARY = ("joined", "left", "graph", "resumed")
_SHOWN = ("worker", "client", "scheduler")


def glance(record: Record) -> Glance:
    """Return how far a run is and how it fares.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> run = barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0)))
    >>> seen = glance(barrow.record(run.folder))
    >>> seen.status, seen.done, seen.planned, seen.left_seconds
    ('done', 1, 1, None)
    """
    record = Record(record.path)  # facts anew: those of a record that was read stay as they were
    facts, status = record.facts, record.status
    began = float(facts.get("began") or 0)
    with closing(record.connect()) as db:
        ended = _find_end(db, facts, status)
        plan = read_plan(facts)
        counts = _count_chunks(db, plan, ended) if plan else _count_tasks(db, ended)
        return Glance(
            name=plan.name if plan else name_program(facts),
            status=status,
            seconds=max(0.0, ended - began),
            **counts,
            processes=tuple(_list_processes(db, status)),
            peak_bytes=_find_peak(db, facts),
            notes=tuple(_list_notes(db, began)),
        )


def _find_end(db: sqlite3.Connection, facts: Mapping[str, Any], status: str) -> float:
    """Return when the run ended, now if it goes on, or when it was last heard of."""
    if status == "running":
        return time.time()
    if facts.get("ended"):
        return float(facts["ended"])
    ((last,),) = db.execute("select max(time) from sample")
    return float(last or facts.get("began") or 0)


def _count_chunks(db: sqlite3.Connection, plan: Plan, now: float) -> dict[str, Any]:
    ((done,),) = db.execute("select count(*) from task")
    ((skipped,),) = db.execute("select count(*) from skipped where step = ?", (plan.name,))
    recent = db.execute(
        "select started + read_seconds + compute_seconds + write_seconds from task "
        f"order by started desc limit {RECENT_TASKS}"
    ).fetchall()
    return {
        "noun": "chunk",
        "done": done,
        "planned": plan.n_chunks,
        "failed": skipped,
        "rate": _find_rate([time for (time,) in recent], now),
    }


def _count_tasks(db: sqlite3.Connection, now: float) -> dict[str, Any]:
    counts = dict(db.execute("select outcome, count(*) from dask_task group by outcome"))
    recent = db.execute(
        f"select ended from dask_task order by id desc limit {RECENT_TASKS}"
    ).fetchall()
    graphs = db.execute("select details from event where kind = 'graph'").fetchall()
    planned = sum(int(json.loads(details).get("new_tasks") or 0) for (details,) in graphs)
    done = counts.get("done", 0)
    return {
        "noun": "task",
        "done": done,
        # Tasks of threads come without a graph that anybody has announced.
        "planned": max(planned, done) if planned else None,
        "failed": counts.get("failed", 0) + counts.get("lost", 0),
        "rate": _find_rate([time for (time,) in recent], now),
    }


def _find_rate(ends: list[float], now: float) -> float:
    """Return how many were done for each second of late.

    Examples
    --------
    >>> _find_rate([9.0, 8.0, 7.0, 6.0], 10.0)
    1.0
    """
    if not ends:
        return 0.0
    return len(ends) / max(1e-3, now - min(ends))


def _list_processes(db: sqlite3.Connection, status: str) -> list[ProcessGlance]:
    """Return those that are there, the client first; of a run that has ended, all."""
    samples: dict[str, list[tuple[Any, ...]]] = {}
    rows = db.execute(
        "select process, time, rss_bytes, spilled_bytes, cpu_seconds from sample "
        f"order by rowid desc limit {RECENT_SAMPLES}"
    )
    for process, *sample in rows:
        samples.setdefault(process, []).append(tuple(sample))
    found = []
    known = db.execute("select name, kind, label, pid, limit_bytes, left from process")
    for name, kind, label, pid, limit, left in known:
        if kind not in _SHOWN or name not in samples or (left and status == "running"):
            continue
        newest = max(samples[name])
        # A peak of the stretch is a sample as well: what is held now is the last one.
        spilled = next((s[2] for s in sorted(samples[name], reverse=True) if s[2] is not None), 0)
        found.append(
            ProcessGlance(
                name=f"{kind} {pid if label is None else label}",
                kind=kind,
                held_bytes=newest[1],
                limit_bytes=limit,
                spilled_bytes=spilled,
                cores=_find_cores(samples[name]),
            )
        )
    return sorted(found, key=lambda process: (_SHOWN.index(process.kind) == 0, process.name))


def _find_cores(samples: list[tuple[Any, ...]]) -> float | None:
    """Return how many cores a process keeps busy, over the last seconds."""
    counted = sorted((s[0], s[3]) for s in samples if s[3] is not None)
    if len(counted) < 2:
        return None
    last, used = counted[-1]
    first, before = next(((t, u) for t, u in counted if t >= last - 3.0), counted[0])
    return float((used - before) / (last - first)) if last > first else None


def _find_peak(db: sqlite3.Connection, facts: Mapping[str, Any]) -> int:
    if facts.get("peak_bytes"):
        return int(facts["peak_bytes"])
    ((most,),) = db.execute("select max(rss_bytes) from sample")
    return int(most or 0)


def _list_notes(db: sqlite3.Connection, began: float) -> list[tuple[float, str]]:
    marks = ", ".join("?" * len(_ORDINARY))
    events = db.execute(
        f"select time, message from event where kind not in ({marks}) and time >= ? "
        f"order by rowid desc limit {MOST_NOTES}",
        (*_ORDINARY, began - 1),
    ).fetchall()
    logs = db.execute(
        "select max(time), logger || ': ' || message from log where time >= ? "
        f"group by logger, message order by 1 desc limit {MOST_NOTES}",
        (began - 1,),
    ).fetchall()
    newest = sorted([*events, *logs])[-MOST_NOTES:]
    return [(max(0.0, when - began), text) for when, text in newest]
