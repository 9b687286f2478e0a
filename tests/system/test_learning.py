"""A run whose prediction was wrong changes the size of what it has not begun."""

import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
import zarr

import barrow
from barrow.model.cost import Cost
from barrow.planning import adjusting, learning

COUNT = 2000
# What was believed: a chunk takes 100 ms, however small or large it is.
FLAT = Cost(points=((1, 0.1), (10**9, 0.11)), peak_per_item=64.0)
ENGINES = {
    "inline": {"engine": "inline", "workers": 1, "threads": 1},
    "threads": {"engine": "threads", "workers": 1, "threads": 2},
    "dask": {"engine": "dask", "workers": 2, "threads": 1},
}


@pytest.fixture(autouse=True)
def small_gains_count(monkeypatch):
    """Let short runs learn too, on machines of any speed."""
    monkeypatch.setattr(adjusting, "LEAST_GAIN_SECONDS", 0.0)
    monkeypatch.setattr(learning, "LEAST_GAIN_SECONDS", 0.0)
    monkeypatch.setattr(learning, "LEAST_SECONDS", 0.0)


def double(x):
    return x * 2


def double_slowly(x):
    """Take the same time however small the block is."""
    np.sort(np.sin(np.arange(200_000.0)))
    return x * 2


def plan_in_small_chunks(data, chunk, engine, func=double, **options):
    plan = barrow.plan(func, data, quiet=True, **options)
    small = {**plan.chunks, plan.cuttable[0]: chunk}
    changes = {"cost": FLAT, "task_seconds": 0.1, "seconds": 0.1 * COUNT, "strides": {}}
    return replace(plan, chunks=small, stored_chunks={}, **changes, **ENGINES[engine])


def rows(run, query):
    return sqlite3.connect(run.folder / "record.sqlite").execute(query).fetchall()


@pytest.mark.parametrize("engine", ENGINES)
def test_chunks_that_are_far_too_small_are_put_together(engine, local_cluster):
    data = np.arange(float(COUNT))
    run = barrow.run(plan_in_small_chunks(data, 1, engine))
    np.testing.assert_array_equal(run.result, data * 2)
    assert run.metrics["resized"] >= 1
    assert run.metrics["chunks"] == COUNT
    events = rows(run, "select kind, message, details from event")
    assert len(events) == run.metrics["resized"]
    kind, message, details = events[0]
    assert kind == "resized"
    assert "computed at once" in message
    assert json.loads(details)["cells"] > 1
    ((largest,),) = rows(run, "select max(cells) from task")
    assert largest > 1
    assert run.metrics["read_bytes"] == run.metrics["written_bytes"] == data.nbytes


def test_a_halo_is_right_across_chunks_that_were_put_together():
    data = np.random.default_rng(0).random((40, 50))

    def neighbours(x):
        return x + np.roll(x, 1, axis=1) + np.roll(x, -1, axis=1)

    plan = plan_in_small_chunks(data, 1, "inline", neighbours, halo={1: 1})
    plan = replace(plan, chunks={"dim_0": 1, "dim_1": 1})
    run = barrow.run(plan)
    assert run.metrics["resized"] >= 1
    padded = np.pad(data, ((0, 0), (1, 1)), mode="symmetric")
    np.testing.assert_array_equal(run.result, data + padded[:, :-2] + padded[:, 2:])


def test_a_stored_result_made_of_larger_blocks_is_whole_and_its_chunks_are_as_planned(tmp_path):
    data = np.arange(400.0)
    plan = plan_in_small_chunks(data, 2, "threads", double_slowly, to=tmp_path / "out.zarr")
    run = barrow.run(plan)
    assert run.metrics["resized"] >= 1
    stored = zarr.open_array(tmp_path / "out.zarr", mode="r")
    assert stored.chunks == (2,)
    np.testing.assert_array_equal(stored[...], data * 2)


def test_what_was_finished_before_is_not_done_again_in_larger_blocks(tmp_path):
    data = np.arange(200.0)
    log, fuse = tmp_path / "log", tmp_path / "fuse"

    def double_once(x):
        with open(log, "a") as file:
            file.writelines(f"{value:.0f}\n" for value in x)
        if fuse.exists() and x[0] >= 5:
            raise OSError("no more")
        return double_slowly(x)

    to = tmp_path / "out.zarr"
    plan = plan_in_small_chunks(data, 1, "inline", double_once, to=to, cluster=False)
    fuse.touch()
    with pytest.raises(OSError, match="no more"):
        barrow.run(plan)
    fuse.unlink()
    log.unlink()
    run = barrow.run(plan)
    assert run.metrics["chunks_found"] == 5
    assert run.metrics["resized"] >= 1
    assert log.read_text().split() == [str(number) for number in range(5, 200)]
    np.testing.assert_array_equal(run.result[...], data * 2)


def test_chunks_set_by_hand_stay_as_they_are():
    data = np.arange(float(COUNT))
    plan = plan_in_small_chunks(data, 1, "inline").with_chunks(dim_0=1)
    run = barrow.run(plan)
    assert run.metrics["resized"] == 0


def test_the_total_of_a_reduction_does_not_depend_on_what_a_run_learns():
    data = np.random.default_rng(0).random(COUNT)
    plan = barrow.plan(np.sum, data, combine=np.add, quiet=True)
    plan = replace(plan, chunks={"dim_0": 1}, cost=FLAT, **ENGINES["inline"])
    run = barrow.run(plan)
    assert run.metrics["resized"] == 0
    assert run.result == barrow.run(plan.with_chunks(dim_0=1)).result


def test_a_function_that_is_fast_on_small_blocks_goes_over_to_strides():
    # What is believed: a chunk takes a hundred times longer than its parts together.
    cost = Cost(points=((1000, 1e-4), (100_000, 1.0)), peak_per_item=64.0)
    lengths = []

    def double(x):
        lengths.append(x.size)
        return np.sort(x)[::-1] * 0 + x * 2

    data = np.random.default_rng(0).random((60, 100_000))
    plan = barrow.plan(double, data, quiet=True, cluster=False)
    lengths.clear()
    changes = {"chunks": {"dim_0": 1, "dim_1": 100_000}, "strides": {}, "task_seconds": 1.0}
    run = barrow.run(replace(plan, cost=cost, **changes, **ENGINES["inline"]))
    np.testing.assert_array_equal(run.result, data * 2)
    assert lengths[0] == 100_000 > min(lengths)
    assert "walked in blocks" in rows(run, "select message from event")[0][0]
    assert run.metrics["chunks"] == 60
