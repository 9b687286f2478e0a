import json
import os
import sqlite3
import time

import numpy as np
import pytest

import barrow
from barrow.errors import InputError
from barrow.sites import hosted
from barrow.sites.local import start_local
from barrow.sites.staffing import Bounds, Rest, count_useful


def wait_until(condition, seconds=30):
    last = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < last, "waited in vain"
        time.sleep(0.05)


# Numbers


def test_no_worker_is_asked_for_that_would_come_when_all_is_done():
    short = Rest(tasks=40, task_seconds=0.1)
    assert count_useful(short, asked=1, there=1, start_seconds=10.0) == 1


def test_a_job_that_waits_long_is_not_given_up_while_there_is_work_for_it():
    rest = Rest(tasks=40, task_seconds=1.0)
    assert count_useful(rest, asked=8, there=1, start_seconds=3600.0) == 8


def test_workers_with_several_threads_are_fewer():
    rest = Rest(tasks=100, task_seconds=10.0, per_worker=4)
    assert count_useful(rest, asked=1, there=1, start_seconds=1.0) == 24


def test_no_more_are_asked_for_than_the_run_was_planned_for():
    rest = Rest(tasks=10_000, task_seconds=10.0, most_workers=3)
    assert count_useful(rest, asked=1, there=1, start_seconds=1.0) == 3


def test_bounds_hold():
    assert [Bounds(2, 5).clip(n) for n in (0, 3, 9)] == [2, 3, 5]


# A cluster


@pytest.fixture
def cluster():
    with start_local(workers=1, threads=1, memory="500MB") as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((0, 2), "minimum=0 is not a count"),
        ((1, 2.5), "maximum=2.5 is not a count"),
        ((3, 2), "maximum=2 is less than minimum=3"),
        ((1, 10**6), "Ask for at most"),
    ],
)
def test_bounds_that_cannot_be_meant_are_refused(local_cluster, bounds, words):
    with pytest.raises(InputError, match=words):
        local_cluster.adapt(*bounds)
    assert not local_cluster._manager.is_adapting


def test_a_cluster_of_others_keeps_its_own_number(start_dask):
    with (
        start_dask(n_workers=1, processes=False) as theirs,
        barrow.cluster(theirs) as cluster,
        pytest.raises(InputError, match="an adapt of its own"),
    ):
        cluster.adapt(1, 2)


def test_workers_come_when_a_run_can_use_them_and_go_afterwards(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(hosted, "REST_SECONDS", 0.1)
    cluster.adapt(1, 3)
    assert cluster.site().workers == 3
    plan = barrow.plan(meeting_of_three(tmp_path), np.zeros((12, 5)), quiet=True).with_chunks(
        dim_0=1, dim_1=5
    )
    run = barrow.run(plan, quiet=True, folder=tmp_path / "run")
    assert np.array_equal(run.result, np.ones((12, 5)))
    with sqlite3.connect(tmp_path / "run/record.sqlite") as db:
        rows = db.execute("select details from event where kind = 'workers'").fetchall()
    held = [json.loads(details) for (details,) in rows]
    assert held[0]["there"] == 1
    assert max(row["asked"] for row in held) == 3
    assert len(list(tmp_path.glob("met-*"))) == 3  # all of them came, and worked
    wait_until(lambda: len(cluster.workers) == 1)
    assert cluster.exits == []


def meeting_of_three(folder):
    """Return a function whose chunks wait until three workers have one."""
    client = os.getpid()

    def meet(block):
        import os
        import time
        from pathlib import Path

        if os.getpid() != client:
            Path(folder, f"met-{os.getpid()}").touch()
            for _ in range(1500):
                if len(list(Path(folder).glob("met-*"))) >= 3:
                    break
                time.sleep(0.02)
        return block + 1

    return meet
