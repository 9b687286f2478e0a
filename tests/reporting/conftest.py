"""Records as runs leave them, made in a moment; and a browser."""

import json
import sqlite3

import numpy as np
import pytest

from barrow.recording.reading import Record
from barrow.recording.record import RecordWriter
from browser import Browser, find_browser

BEGAN = 1_800_000_000.0
MIB = 2**20


class RecordMaker:
    """Fills the tables of a record."""

    def __init__(self, path):
        self.path = path
        with RecordWriter(path) as writer:
            writer.describe({"began": BEGAN, "ended": BEGAN + 60, "status": "done"})

    def describe(self, **facts):
        with RecordWriter(self.path) as writer:
            writer.describe(facts)
        return self

    def forget(self, name):
        return self._write("delete from run where name = ?", [(name,)])

    def forget_events(self, kind):
        return self._write("delete from event where kind = ?", [(kind,)])

    def add(self, table, rows):
        """Insert rows, each a mapping of columns; columns not given are null."""
        names = sorted({name for row in rows for name in row})
        marks = ", ".join("?" for _ in names)
        sql = f"insert into {table} ({', '.join(names)}) values ({marks})"
        return self._write(sql, [[row.get(name) for name in names] for row in rows])

    def read(self):
        return Record(self.path)

    def _write(self, sql, rows):
        with sqlite3.connect(self.path) as db:
            db.executemany(sql, rows)
        db.close()
        return self


@pytest.fixture
def empty_record(tmp_path):
    """A record of a run that has done nothing."""
    return RecordMaker(tmp_path / "record.sqlite")


@pytest.fixture
def watched(tmp_path):
    """Return a function that makes the record of a watched Dask program with an eventful run."""
    return lambda **options: make_watched(tmp_path / "record.sqlite", **options)


@pytest.fixture(scope="session")
def browser():
    """A real browser; tests that need it are skipped where there is none."""
    path = find_browser()
    if path is None:
        pytest.skip("There is no Chromium. tests/install-browser puts one where it can.")
    with Browser(path) as started:
        yield started


def make_watched(path, *, workers=4, threads=2, tasks=400, steps=None, names=None, seconds=60.0):
    """Return a record with workers that spill, pause and die, spans, events and warnings."""
    random = np.random.default_rng(0)
    steps = steps or ["read_frames", "remove_background", "fit", "sum-tree", "rechunk-p2p"]
    names = names or [f"worker-{number}" for number in range(workers)]
    made = RecordMaker(path)
    made.describe(
        kind="watch",
        pid=4000,
        host="node17",
        command=["analysis.py", "--day", "3"],
        folder="/data/mouse 7",
        machine={"cores": 8, "memory_bytes": 32 * 2**30},
        settings={"distributed": {"worker": {"memory": {"target": 0.6}}}},
        versions={"dask": "2026.8.0", "numpy": "2.4.6"},
        python="3.12.1",
        platform="Linux-6.1",
        ended=BEGAN + seconds,
    )
    processes = [f"node17/{4001 + number}" for number in range(workers)]
    made.add(
        "process",
        [
            {
                "name": process,
                "kind": "worker",
                "host": "node17",
                "pid": 4001 + number,
                "address": f"tcp://10.0.0.1:{5000 + number}",
                "label": names[number % len(names)],
                "threads": threads,
                "limit_bytes": 1500 * MIB,
                "joined": BEGAN,
                "left": BEGAN + seconds * (0.6 if number == 1 else 1),
                "reason": "killed by signal 9" if number == 1 else "closed",
            }
            for number, process in enumerate(processes)
        ],
    )
    lanes = [(process, thread) for process in processes for thread in range(threads)]
    free = dict.fromkeys(lanes, BEGAN + 0.5)
    mean = 0.9 * seconds * len(lanes) / max(1, tasks)
    rows = []
    chosen = random.choice(len(steps), tasks, p=_weights(len(steps))).tolist()
    lengths = (mean * random.gamma(3, size=tasks) / 3).tolist()
    peaks = (random.uniform(50, 300, tasks) * MIB).astype(int).tolist()
    for number, (step, took, peak) in enumerate(zip(chosen, lengths, peaks, strict=True)):
        lane = min(lanes, key=free.__getitem__)
        started = free[lane] + 0.05 * mean
        free[lane] = started + took
        failed = number % 97 == 5
        rows.append(
            {
                "id": number,
                "step": steps[step],
                "key": f"('{steps[step]}-ab12', {number})",
                "span": 2 + step % 2,
                "worker": lane[0],
                "thread": lane[1],
                "ready": started,
                "started": started,
                "ended": free[lane],
                "compute_seconds": 0.8 * took,
                "send_seconds": 0.15 * took,
                "spill_seconds": 0.05 * took,
                "cpu_seconds": 0.7 * took,
                "received_bytes": 3 * MIB,
                "result_bytes": 8 * MIB,
                "peak_bytes": peak,
                "attempt": 1,
                "outcome": "failed" if failed else "done",
                "error": "ValueError('no photons')" if failed else None,
            }
        )
    if rows:
        made.add("dask_task", rows)
    ticks = np.arange(0, seconds, seconds / 240)
    made.add(
        "sample",
        [
            {
                "time": BEGAN + float(tick),
                "process": process,
                "rss_bytes": int(_memory(tick / seconds, number) * MIB),
                "managed_bytes": int(0.6 * _memory(tick / seconds, number) * MIB),
                "spilled_bytes": int(max(0, tick / seconds - 0.5) * 800 * MIB) if not number else 0,
            }
            for number, process in enumerate(processes)
            for tick in ticks
            if number != 1 or tick < 0.6 * seconds
        ],
    )
    made.add(
        "event",
        [
            _event(0.1, "graph", "A graph arrived.", "node17/4000"),
            _event(0.2, "graph", "A graph arrived.", "node17/4000"),
            _event(0.45 * seconds, "paused", "Worker 2 is paused.", processes[2 % workers]),
            _event(0.5 * seconds, "resumed", "Worker 2 is running.", processes[2 % workers]),
            _event(0.6 * seconds, "lost", "Worker 1 was lost.", processes[1 % workers]),
        ],
    )
    made.add(
        "span",
        [
            {"id": 1, "name": "analysis", "started": BEGAN, "ended": BEGAN + seconds},
            {"id": 2, "parent": 1, "name": "load", "started": BEGAN, "ended": BEGAN + seconds / 3},
            {"id": 3, "parent": 1, "name": "fit", "started": BEGAN + seconds / 3},
        ],
    )
    line = {"process": processes[0], "level": "WARNING", "logger": "distributed.worker.memory"}
    said = "Unmanaged memory use is high."
    made.add("log", [{**line, "time": BEGAN + t, "message": said} for t in (20, 30, 40)])
    return made


def _weights(count):
    weights = 1 / np.arange(1, count + 1)
    return weights / weights.sum()


def _memory(share, number):
    wave = 250 * np.sin(20 * share + number)
    return 400 + 700 * share + wave + (250 if number == 2 and 0.4 < share < 0.5 else 0)


def _event(after, kind, message, process):
    details = json.dumps({"process": process})
    return {"time": BEGAN + after, "kind": kind, "message": message, "details": details}
