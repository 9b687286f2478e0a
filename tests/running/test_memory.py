"""The peak of a task is the most that its process held while it ran."""

import os
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.running.memory import PeakGauge, resident_bytes

TEMPORARY = 64 * 2**20


def greedy(x):
    """Hold a known temporary, but only for one of the chunks."""
    if x[0] == 3:
        np.ones(TEMPORARY, "u1")
    return x + 1


def peaks(run):
    rows = sqlite3.connect(run.folder / "record.sqlite").execute(
        "select chunk, peak_bytes from task order by chunk"
    )
    return [peak for _, peak in rows]


def test_a_worker_of_our_own_tells_the_peak_of_each_task(local_cluster):
    plan = barrow.plan(greedy, np.arange(8.0), quiet=True).with_chunks(dim_0=1)
    changes = {"engine": "dask", "workers": 2, "threads": 1}
    # So long that each chunk travels alone.
    run = barrow.run(replace(plan, **changes, seconds=1000.0))
    found = peaks(run)
    assert 0.9 * TEMPORARY < found[3] < 1.5 * TEMPORARY
    assert max(found[:3] + found[4:]) < 0.5 * TEMPORARY
    assert run.metrics["peak_task_bytes"] == found[3]


def test_in_this_process_a_new_peak_is_seen():
    # Above all that this process ever held.
    with open("/proc/self/status") as file:
        highest = next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024
    base = resident_bytes()
    size = highest - base + TEMPORARY
    with PeakGauge(base) as gauge:
        np.ones(size, "u1")
        assert size * 0.9 < gauge.read() < size * 1.5
        # The mark does not rise any more, so what is held now is told.
        assert gauge.read() < size * 0.5


def test_the_mark_of_a_process_that_is_not_ours_is_never_set_back(monkeypatch):
    written = []
    monkeypatch.setattr(os, "write", lambda *given: written.append(given))
    monkeypatch.setenv("BARROW_WORKER", str(os.getppid()))
    with PeakGauge(0) as gauge:
        gauge.read()
    assert written == []


def test_where_the_system_keeps_no_mark_the_present_size_is_told(monkeypatch):
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(FileNotFoundError()))
    with PeakGauge(0) as gauge:
        assert gauge.read() == pytest.approx(resident_bytes(), rel=0.2)
