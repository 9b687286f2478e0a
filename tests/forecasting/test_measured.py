"""What is read from a record: made here by hand, so that every number is known."""

import numpy as np
import pytest

from barrow.errors import InputError
from barrow.forecasting.measured import fit_gap, read_measured
from barrow.recording.schema import COLUMNS
from barrow.simulating.load import Load, Stage
from barrow.simulating.simulate import simulate

BEGAN = 1000.0


class Record:
    """Tables by their rows; columns that a row does not name are None."""

    def __init__(self, facts, **tables):
        self.facts = facts
        self._tables = tables

    def columns(self, name):
        rows = self._tables.get(name, [])
        return {column: [row.get(column) for row in rows] for column in COLUMNS[name]}


def watched(tasks, workers=1, samples=(), **facts):
    """Return the record of a program that Dask ran on some workers, 2 s after its beginning."""
    last = max((task["ended"] for task in tasks), default=BEGAN)
    processes = [
        {"name": "here/1", "kind": "client", "host": "here", "joined": BEGAN},
        *(
            {
                "name": f"here/{10 + number}", "kind": "worker", "host": "here", "threads": 1,
                "joined": BEGAN + 1, "address": f"tcp://127.0.0.1:{number}", "pid": 10 + number,
            }
            for number in range(workers)
        ),
    ]  # fmt: skip
    facts = {
        "kind": "watch", "began": BEGAN, "ended": last + 1, "status": "done",
        "command": ["fit.py"], "machine": {"cores": 2}, **facts,
    }  # fmt: skip
    return Record(facts, dask_task=tasks, process=processes, sample=list(samples))


def task(number, started, seconds, ready=BEGAN + 2, worker=10, outcome="done", waited_for=None):
    return {
        "id": number, "step": "fit", "key": f"fit-{number}", "worker": f"here/{worker}",
        "thread": 1, "ready": ready, "started": started, "ended": started + seconds,
        "compute_seconds": seconds, "send_seconds": 0.0, "spill_seconds": 0.0, "attempt": 1,
        "outcome": outcome, "waited_for": waited_for,
    }  # fmt: skip


def in_a_row(count, seconds, gap):
    return [task(n, BEGAN + 2 + n * (seconds + gap), seconds) for n in range(count)]


def chunks(count, seconds, cpu_seconds, pid=10):
    """Return what a run of barrow's own notes of its chunks, one after the other."""
    return [
        {
            "chunk": n, "worker": f"{pid}/1", "started": BEGAN + 2 + n * seconds, "cells": 1,
            "read_seconds": 0.0, "compute_seconds": seconds, "write_seconds": 0.0,
            "cpu_seconds": cpu_seconds,
        }
        for n in range(count)
    ]  # fmt: skip


def sample(when, process, cpu, rss=10**8):
    return {"time": when, "process": process, "rss_bytes": rss, "cpu_seconds": cpu}


def test_gap_client_and_tasks_are_those_of_the_record():
    found = read_measured(watched(in_a_row(20, 1.0, 0.25)))
    load = found.load
    assert load.count == 20
    assert load.client_seconds == pytest.approx(3.0)
    # Between 20 tasks are 19 gaps, and the simulation has one before each.
    assert load.gap_seconds == pytest.approx(0.25 * 19 / 20, abs=0.002)
    assert (found.workers, found.stage.cores) == (1, 2.0)
    assert len(load.after) == 0


def test_the_scheduler_is_what_the_client_used_for_each_task():
    tasks = in_a_row(100, 0.01, 0.01)
    first, last = tasks[0]["started"], tasks[-1]["ended"]
    use = [sample(first, "here/1", 5.0), sample(last, "here/1", 6.0)]
    load = read_measured(watched(tasks, samples=use)).load
    idle = 0.03 * (last - first)
    assert load.scheduler_seconds == pytest.approx((1.0 - idle) / 100)


def test_what_runs_by_the_clock_is_not_charged_to_long_tasks():
    tasks = in_a_row(10, 10.0, 0.0)
    use = [sample(BEGAN + 2, "here/1", 0.0), sample(tasks[-1]["ended"], "here/1", 2.0)]
    assert read_measured(watched(tasks, samples=use)).load.scheduler_seconds < 0.001


def test_tasks_use_cores_as_far_as_dask_has_measured_it():
    activity = {"execute | fit | thread-cpu | seconds": 5.0}
    record = watched(in_a_row(20, 1.0, 0.0), **{"activity tcp://here": activity})
    load = read_measured(record).load
    assert float(load.cpu_seconds.sum()) == pytest.approx(5.0)
    assert float(load.waits.sum()) == pytest.approx(15.0)


def test_a_task_that_could_begin_when_another_ended_waits_for_it():
    first, second = task(0, BEGAN + 2, 1.0), task(1, BEGAN + 2, 3.0, worker=11)
    last = task(2, BEGAN + 5.01, 1.0, ready=BEGAN + 5.005)
    load = read_measured(watched([first, second, last], workers=2)).load
    assert load.after.tolist() == [-1, -1, 1]


def test_a_task_waits_for_the_one_that_the_scheduler_has_named():
    # Short ones: when the scheduler hears of the first end, the second has ended, too.
    first, second = task(0, BEGAN + 2, 0.01), task(1, BEGAN + 2.01, 0.01)
    last = task(2, BEGAN + 2.03, 0.01, ready=BEGAN + 2.021, waited_for="fit-0")
    load = read_measured(watched([first, second, last])).load
    assert load.after.tolist() == [-1, -1, 0]
    assert load.delay_seconds.tolist() == [0.0, 0.0, 0.0]


def test_of_tasks_with_one_key_the_last_before_it_was_waited_for():
    again = {**task(1, BEGAN + 3, 1.0, ready=BEGAN + 3), "key": "fit-0"}
    last = task(2, BEGAN + 4, 1.0, ready=BEGAN + 4, waited_for="fit-0")
    later = {**task(3, BEGAN + 6, 1.0, ready=BEGAN + 5.5), "key": "fit-0"}
    load = read_measured(watched([task(0, BEGAN + 2, 1.0), again, last, later])).load
    assert load.after.tolist() == [-1, 0, 1, 2]


def test_what_the_client_hands_in_later_comes_as_much_later():
    first = task(0, BEGAN + 2, 1.0)
    later = task(1, BEGAN + 8, 1.0, ready=BEGAN + 8)
    load = read_measured(watched([first, later])).load
    assert load.after.tolist() == [-1, 0]
    assert load.delay_seconds.tolist() == [0.0, 5.0]


def test_tasks_that_failed_do_not_count_and_lost_workers_do():
    tasks = [*in_a_row(4, 1.0, 0.0), task(9, BEGAN + 3, 1.0, outcome="failed")]
    record = watched(tasks)
    record._tables["event"] = [{"time": BEGAN + 3, "kind": "lost", "message": "", "details": "{}"}]
    load = read_measured(record).load
    assert load.count == 4
    assert load.losses_per_second == pytest.approx(1 / 4)


def test_memory_is_that_of_the_largest_worker_and_of_the_client():
    use = [
        sample(BEGAN + 3, "here/1", 0.0, 3 * 10**8),
        sample(BEGAN + 3, "here/10", 0.0, 5 * 10**8),
    ]
    load = read_measured(watched(in_a_row(4, 1.0, 0.0), samples=use)).load
    assert (load.worker_bytes, load.client_bytes) == (5 * 10**8, 3 * 10**8)


def test_workers_that_came_late_come_late_again():
    record = watched(in_a_row(4, 1.0, 0.0), workers=2)
    record._tables["process"][2]["joined"] = BEGAN + 4
    found = read_measured(record)
    assert np.sort(found.load.start_seconds).tolist() == [0.0, 2.0]
    assert found.held == ((1.0, 1), (4.0, 2))


def test_workers_that_stood_by_while_the_client_did_it_all_do_not_count():
    tasks = [task(n, BEGAN + 2 + n // 2, 1.0, worker=1) | {"thread": n % 2} for n in range(4)]
    busy = [sample(BEGAN + second, "here/1", 2.0 * second) for second in range(6)]
    found = read_measured(watched(tasks, samples=busy))
    assert (found.stage.workers, found.stage.threads) == (2, 1)
    assert found.load.scheduler_seconds == 0


def test_a_task_waits_while_other_threads_of_its_process_work_for_it():
    record = watched([], ended=BEGAN + 12)
    record._tables["task"] = chunks(10, seconds=1.0, cpu_seconds=0.3)
    record._tables["sample"] = [
        sample(BEGAN + second, name, share * second)
        for second in range(13)
        for name, share in (("here/1", 0.2), ("here/10", 0.9))
    ]
    load = read_measured(record).load
    assert load.idle_share == pytest.approx(0.04)
    assert load.cpu_seconds == pytest.approx(np.full(10, 0.9 - 0.04))
    assert load.waits == pytest.approx(np.full(10, 0.1 + 0.04), abs=0.02)
    assert load.scheduler_seconds == pytest.approx(0.2 - 0.03)


@pytest.mark.parametrize("looked", [range(5, 13), range(2, 10), range(5, 10)])
def test_a_worker_works_also_while_nobody_looks(looked):
    record = watched([], ended=BEGAN + 12)
    record._tables["task"] = chunks(10, seconds=1.0, cpu_seconds=0.3)
    record._tables["sample"] = [sample(BEGAN + n, "here/10", 0.9 * n) for n in looked]
    # A run of barrow's own notes a worker when somebody looks at it.
    record._tables["process"][1]["joined"] = BEGAN + looked[0]
    load = read_measured(record).load
    if len(looked) > 5:
        assert load.cpu_seconds == pytest.approx(np.full(10, 0.9 - 0.04))
    else:  # too little of it was seen
        assert load.cpu_seconds == pytest.approx(np.full(10, 0.36 - 0.04))


def test_a_worker_that_came_late_has_not_worked_before():
    record = watched([], ended=BEGAN + 12, workers=2)
    early, late = chunks(10, 1.0, 0.3), chunks(4, 1.0, 0.3, pid=11)
    for row in late:
        row["started"] += 6
    record._tables["task"] = early + late
    record._tables["sample"] = [sample(BEGAN + n, "here/10", 0.5 * n) for n in range(13)]
    record._tables["sample"] += [sample(BEGAN + n, "here/11", 0.5 * n) for n in range(9, 13)]
    record._tables["process"][2]["joined"] = BEGAN + 9
    load = read_measured(record).load
    # Ten seconds of the one and four of the other; standing by is no work.
    assert 14 * load.cpu_seconds.mean() == pytest.approx(0.5 * (10 + 4) - 0.04 * 20)


def test_a_worker_that_was_looked_at_too_seldom_uses_what_workers_use():
    record = watched([], ended=BEGAN + 12)
    record._tables["task"] = chunks(10, seconds=1.0, cpu_seconds=0.9)
    record._tables["sample"] = [sample(BEGAN + n, "here/10", 0.5 * n) for n in range(13)]
    load = read_measured(record).load
    assert load.idle_share == pytest.approx(0.04)
    assert load.cpu_seconds == pytest.approx(np.full(10, 0.9))


def test_a_worker_on_several_cores_takes_no_longer_than_it_took():
    record = watched([], ended=BEGAN + 12)
    record._tables["task"] = chunks(10, seconds=1.0, cpu_seconds=0.3)
    record._tables["sample"] = [sample(BEGAN + n, "here/10", 1.8 * n) for n in range(13)]
    load = read_measured(record).load
    assert load.cpu_seconds + load.waits == pytest.approx(np.ones(10))


def test_tasks_that_took_turns_on_a_core_have_waited_for_nothing_else():
    stage = Stage(workers=4, cores=1.0)
    load = Load(np.full(8, 1.0), wait_seconds=np.full(8, 3.0))
    found = fit_gap(load, stage, seconds=8.0)
    assert simulate(found, stage).seconds == pytest.approx(8.0, rel=0.01)
    assert found.waits.max() < 0.01


def test_a_record_without_a_task_says_so():
    with pytest.raises(InputError, match=r"'fit\.py' has finished no task"):
        read_measured(watched([]))
