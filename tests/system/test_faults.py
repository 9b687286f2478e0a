"""Runs that meet trouble end with the same result as those that do not."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.errors import BudgetError, ClusterError
from barrow.model.applied import apply_step

DATA = np.random.default_rng(0).integers(0, 255, (64, 128, 128)).astype("f8")
MIB = 2**20


def planned(func, *, engine="inline", frames=8, budget=100 * MIB, **options):
    """Return a plan for a function that was never tried out, in chunks of a few frames."""
    plan = barrow.plan(lambda x: x + 1, DATA, quiet=True, name="lies", **options)
    apply = plan.target.read
    target = apply_step(replace(apply.step, func=func), apply.inputs, apply.form)
    return replace(
        plan,
        target=target,
        engine=engine,
        workers=2 if engine == "dask" else 1,
        threads=2 if engine == "threads" else 1,
        chunks={"dim_0": frames, "dim_1": 128, "dim_2": 128},
        strides={},
        stored_chunks={},
        budget_bytes=budget,
    )


def hungry(x):
    """Needs five hundred times the memory that one would think."""
    np.ones(x.size * 500)
    return x + 1


def sometimes_hungry(x):
    if (x[0, 0, 0] % 5) == 0:
        np.ones(x.size * 500)
    return x + 1


@pytest.mark.parametrize("engine", ["inline", "threads", "dask"])
@pytest.mark.parametrize("func", [hungry, sometimes_hungry])
def test_chunks_that_need_more_than_was_thought_are_split(func, engine, local_cluster):
    run = barrow.run(planned(func, engine=engine))
    assert np.array_equal(run.result, DATA + 1)
    assert run.metrics["split"] > 0
    assert run.metrics["lost"] == 0


def test_a_reduction_whose_chunks_do_not_fit_adds_up_the_same():
    def total(x):
        np.ones(x.size * 500)
        return x.sum()

    plan = barrow.plan(np.sum, DATA, combine=lambda a, b: a + b, quiet=True)
    apply = plan.target.read
    target = apply_step(replace(apply.step, func=total), apply.inputs, apply.form)
    plan = replace(plan, target=target, engine="inline", budget_bytes=100 * MIB)
    run = barrow.run(replace(plan, chunks={"dim_0": 16, "dim_1": 128, "dim_2": 128}))
    assert run.result == DATA.sum()
    assert run.metrics["split"] > 0


@pytest.mark.parametrize("engine", ["inline", "dask"])
def test_a_chunk_that_can_never_fit_ends_the_run_with_one_error(engine, local_cluster):
    def greedy(x):
        return x + np.ones(10**10)[0]

    with pytest.raises(BudgetError, match=r"chunk \d+ .*0:128, 0:128\].* asked for 74.5 GiB at"):
        barrow.run(planned(greedy, engine=engine))


def test_a_chunk_that_cannot_be_split_may_use_what_all_threads_have():
    def large(x):
        np.ones(50 * MIB)
        return x + 1

    run = barrow.run(replace(planned(large, engine="threads", frames=32), cuttable=()))
    assert np.array_equal(run.result, DATA + 1)
    assert run.metrics["split"] == 0


def test_chunks_of_a_worker_that_was_killed_are_done_again(local_cluster, tmp_path):
    marker = tmp_path / "killed"

    def once(x):
        if x[0, 0, 0] == DATA[24, 0, 0] and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x + 1

    run = barrow.run(planned(once, engine="dask"))
    assert np.array_equal(run.result, DATA + 1)
    assert run.metrics["lost"] > 0
    assert run.metrics["split"] == 0


def test_a_chunk_that_kills_its_worker_is_split(local_cluster):
    def kills(x):
        if len(x) > 16:
            os.kill(os.getpid(), signal.SIGKILL)
        return x + 1

    run = barrow.run(planned(kills, engine="dask", frames=32))
    assert np.array_equal(run.result, DATA + 1)
    assert run.metrics["split"] > 0


def test_a_function_that_ends_every_process_is_blamed_in_the_end(local_cluster):
    def kills(x):
        os.kill(os.getpid(), signal.SIGKILL)

    plan = planned(kills, engine="dask", frames=64)
    with pytest.raises(ClusterError, match=r"workers died while they had chunk 0"):
        barrow.run(replace(plan, cuttable=()))


def test_the_record_tells_what_was_split(tmp_path):
    import sqlite3

    barrow.run(planned(hungry), folder=tmp_path / "run")
    with sqlite3.connect(tmp_path / "run" / "record.sqlite") as db:
        rows = db.execute("select kind, message from event").fetchall()
    assert any(kind == "split" and "needed more than 100 MiB" in text for kind, text in rows)


@pytest.mark.parametrize("engine", ["inline", "threads", "dask"])
def test_an_error_of_the_function_is_raised_and_what_was_done_before_is_kept(
    engine, local_cluster, tmp_path
):
    def fails(x):
        if x[0, 0, 0] == DATA[40, 0, 0]:
            raise ZeroDivisionError("in the middle")
        return x + 1

    plan = replace(planned(fails, engine=engine, to=tmp_path / "out.zarr"))
    with pytest.raises(ZeroDivisionError, match="in the middle") as caught:
        barrow.run(plan)
    assert any("40:48" in note for note in caught.value.__notes__)


def test_a_worker_that_leaks_is_replaced_between_chunks():
    def leaks(x):
        import builtins

        kept = builtins.__dict__.setdefault("_kept_by_a_test", [])
        kept.append(np.ones(50 * MIB, "u1"))
        return x + 1

    with barrow.cluster("local", workers=1, threads=1, memory="500MB") as cluster:
        plan = planned(leaks, engine="dask", frames=4, budget=200 * MIB)
        run = barrow.run(replace(plan, workers=1), cluster=cluster)
        assert all(end.code >= 0 for end in cluster.exits)
    assert np.array_equal(run.result, DATA + 1)
    assert run.metrics["recycled"] > 0
    assert run.metrics["peak_resident_bytes"] < 500 * 10**6
