from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.model.applied import Form, apply_step
from barrow.model.grid import Grid
from barrow.running.backlog import Backlog
from barrow.running.engines import InlineEngine, ThreadEngine
from barrow.running.room import run_chunks
from barrow.running.sinks import MemorySink
from barrow.running.task import Work


def give_up(setback):
    raise setback.error


class Watched:
    """An engine that notes how many batches were in flight."""

    def __init__(self, engine):
        self._engine = engine
        self.window = engine.window
        self.batch_seconds = engine.batch_seconds
        self.in_flight = self.most_in_flight = 0

    def submit(self, batch):
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self._engine.submit(batch)

    def collect(self):
        reports = self._engine.collect()
        self.in_flight -= len(reports)
        return reports

    def stop(self, patience_seconds=None):
        return self._engine.stop(patience_seconds)


def work_of(func, data, chunk):
    source = barrow.open(data)
    form = Form(source.lengths, source.dtype, frozenset(source.lengths), frozenset())
    target = apply_step(barrow.Step(func), [source], form)
    out = np.full(data.shape, -1.0)
    return Work(target, Grid(target.lengths, chunk), MemorySink(out)), out


@pytest.mark.parametrize("make", [InlineEngine, lambda work: ThreadEngine(work, 2)])
def test_no_more_than_a_window_is_ever_in_flight(make):
    work, out = work_of(np.negative, np.arange(5000.0), {"dim_0": 1})
    engine = Watched(make(work))
    reports = []
    run_chunks(
        engine,
        Backlog(work.grid),
        slots=2,
        chunk_seconds=0,
        on_report=lambda _, report: reports.append(report),
        on_setback=give_up,
    )
    assert engine.most_in_flight <= engine.window
    assert sorted(chunk.number for report in reports for chunk in report.chunks) == list(
        range(5000)
    )
    np.testing.assert_array_equal(out, -np.arange(5000.0))


def test_an_error_stops_the_run_and_keeps_what_was_done():
    def fail_late(x):
        if x[0] >= 70:
            raise RuntimeError("no more")
        return x

    work, out = work_of(fail_late, np.arange(100.0), {"dim_0": 10})
    with pytest.raises(RuntimeError, match="no more"):
        run_chunks(
            InlineEngine(work),
            Backlog(work.grid),
            slots=1,
            chunk_seconds=0,
            on_report=lambda *_: None,
            on_setback=give_up,
        )
    np.testing.assert_array_equal(out[:70], np.arange(70.0))


def test_what_failed_and_was_put_back_is_done_before_the_rest():
    failed = []

    def fail_once(x):
        if x[0] == 30 and not failed:
            failed.append(x[0])
            raise RuntimeError("once")
        return x

    work, out = work_of(fail_once, np.arange(100.0), {"dim_0": 10})
    backlog, order = Backlog(work.grid), []
    run_chunks(
        InlineEngine(work),
        backlog,
        slots=1,
        chunk_seconds=0,
        on_report=lambda _, report: order.extend(chunk.number for chunk in report.chunks),
        on_setback=lambda setback: backlog.put_back(setback.batch),
    )
    assert order == list(range(10))
    np.testing.assert_array_equal(out, np.arange(100.0))


def test_what_must_run_alone_waits_for_the_others_and_they_for_it():
    work, _ = work_of(np.negative, np.arange(100.0), {"dim_0": 1})
    engine = Watched(ThreadEngine(work, 2))
    backlog = Backlog(work.grid)
    alone = replace(backlog.take(1), is_alone=True)
    backlog.put_back(alone)
    seen = []
    submit = engine.submit

    def watch(batch):
        submit(batch)
        seen.append((batch.is_alone, engine.in_flight))

    engine.submit = watch
    run_chunks(
        engine,
        backlog,
        slots=2,
        chunk_seconds=0,
        on_report=lambda *_: None,
        on_setback=give_up,
    )
    assert seen[0] == (True, 1)
    assert seen[1] == (False, 1)
