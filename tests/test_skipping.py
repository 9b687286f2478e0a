"""Chunks on which the function fails: they end the run, or are left out and listed."""

import os
from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.errors import InputError, OutputError, SkippedWarning

DATA = np.arange(1.0, 601.0).reshape(120, 5)
BAD = 426.0  # in row 85


def picky(x):
    if (x == BAD).any():
        raise ValueError(f"cannot bear {BAD:.0f}")
    return -x


def plan_rows(func, data=DATA, rows=2, **options):
    plan = barrow.plan(func, data, on_error="skip", quiet=True, **options)
    return replace(plan, chunks={**plan.chunks, next(iter(plan.lengths)): rows})


def run_with_gaps(plan, **options):
    with pytest.warns(SkippedWarning, match="could not be computed"):
        return barrow.run(plan, **options)


def expected(rows=slice(84, 86), value=np.nan):
    whole = -DATA
    whole[rows] = value
    return whole


@pytest.mark.parametrize("options", [{}, {"cluster": False}], ids=["decides", "in line"])
def test_a_chunk_that_fails_is_left_out_and_listed(options):
    run = run_with_gaps(plan_rows(picky, **options))
    np.testing.assert_array_equal(run.result, expected())
    (skipped,) = run.skipped
    assert (skipped.step, skipped.chunk, skipped.ranges) == ("picky", 42, ((84, 86), (0, 5)))
    assert skipped.attempts >= 1
    assert skipped.reason.startswith("ValueError: cannot bear 426 (step 'picky' was called with")
    assert run.metrics["skipped"] == 1


def test_on_workers_it_is_left_out_as_well():
    with barrow.cluster("local", workers=2, threads=1, memory="500MB") as cluster:
        run = run_with_gaps(plan_rows(picky, cluster=cluster))
        np.testing.assert_array_equal(run.result, expected())
        assert [skipped.chunk for skipped in run.skipped] == [42]


def test_in_threads_it_is_left_out_as_well():
    run = run_with_gaps(replace(plan_rows(picky), engine="threads", threads=2))
    np.testing.assert_array_equal(run.result, expected())


@pytest.mark.parametrize(
    ("dtype", "gap"),
    [("f4", np.nan), ("c16", np.nan), ("i2", 0), ("bool", False), ("M8[s]", np.datetime64("NaT"))],
)
def test_a_gap_is_nan_or_zero(tmp_path, dtype, gap):
    def convert(x):
        return np.abs(picky(x)).astype("i8").astype(dtype)

    run = run_with_gaps(plan_rows(convert, to=tmp_path / "out.zarr"))
    whole = DATA.astype("i8").astype(dtype)
    whole[84:86] = gap
    np.testing.assert_array_equal(run.result[...], whole)


def test_a_stored_result_keeps_what_was_skipped(tmp_path):
    made = run_with_gaps(plan_rows(picky, to=tmp_path / "out.zarr"))
    again = run_with_gaps(plan_rows(picky, to=tmp_path / "out.zarr"))
    assert again.skipped == made.skipped
    np.testing.assert_array_equal(again.result[...], expected())


def test_a_result_with_gaps_is_not_taken_for_a_whole_one(tmp_path):
    run_with_gaps(plan_rows(picky, to=tmp_path / "out.zarr"))
    whole = replace(plan_rows(picky, to=tmp_path / "out.zarr"))
    with pytest.raises(OutputError, match="1 chunk of it"):
        barrow.run(whole, on_error="stop")


def test_an_interrupted_run_tries_skipped_chunks_again(tmp_path):
    flag = tmp_path / "flag"

    def sometimes(x):
        if not flag.exists() and x[0, 0] == 11.0 and len(x) == 2:
            raise OSError("network gone")
        if not flag.exists() and x[0, 0] == 31.0 and len(x) == 2:
            os.close(os.open(flag, os.O_CREAT))
            raise KeyboardInterrupt
        return -x

    plan = replace(plan_rows(sometimes, to=tmp_path / "out.zarr"), engine="inline")
    with pytest.raises(KeyboardInterrupt):
        barrow.run(plan)
    run = barrow.run(plan)
    assert not run.skipped
    np.testing.assert_array_equal(run.result[...], -DATA)


def test_a_total_leaves_them_out():
    def total(x):
        return picky(x).sum()

    plan = plan_rows(total, combine=lambda a, b: a + b)
    run = run_with_gaps(plan)
    assert run.result == np.nansum(expected())
    assert len(run.skipped) == 1


def test_only_the_chunks_that_fail_are_lost_from_a_batch():
    data = np.arange(4000.0).reshape(1000, 4)

    def rare(x):
        if len(x) == 1 and x[0, 0] % 400 == 0:
            raise ValueError("no")
        return x

    run = run_with_gaps(plan_rows(rare, data, rows=1))
    assert [skipped.chunk for skipped in run.skipped] == list(range(0, 1000, 100))
    assert np.isnan(run.result).sum() == 40


def test_a_function_that_always_fails_ends_the_run():
    with pytest.raises(ZeroDivisionError):
        barrow.map(lambda x: len(x) // 0, DATA, on_error="skip")

    def never_two(x):
        if len(x) == 2:
            raise ValueError("never two")
        return x

    with pytest.raises(ValueError, match="never two"):
        barrow.run(plan_rows(never_two))


def test_data_that_fail_in_the_middle_can_be_measured_elsewhere():
    data = np.ones((900, 1000))
    data[450:460, 480:530] = np.nan

    def strict(x):
        if np.isnan(x).any():
            raise ValueError("no data")
        return x * 2

    run = run_with_gaps(plan_rows(strict, data, rows=10))
    assert [skipped.ranges[0] for skipped in run.skipped] == [(450, 460)]
    assert np.nansum(run.result) == 2 * (900 - 10) * 1000


def test_a_chunk_that_never_fits_can_be_skipped():
    def greedy(x):
        if x[0, 0] in (421.0, 426.0) and len(x) <= 2:
            np.ones(2**34)
        return -x

    plan = replace(plan_rows(greedy, memory="300MB"), engine="inline")
    run = run_with_gaps(plan)
    (skipped,) = run.skipped
    assert skipped.chunk == 42
    assert skipped.attempts > 1
    assert "BudgetError" in skipped.reason
    np.testing.assert_array_equal(run.result, expected())


def test_stages_before_the_last_are_listed_too(monkeypatch):
    monkeypatch.setattr("barrow.model.reading.MUCH_BYTES", 2**16)
    monkeypatch.setattr("barrow.composing.FUSED_BYTES", 2**16)
    data = np.arange(1.0, 60001.0).reshape(300, 200)

    def center(x):
        return x - np.nanmean(x, axis=0)

    steps = [barrow.Step(picky, whole=[1]), barrow.Step(center, whole=[0])]
    plan = barrow.plan(steps, data, on_error="skip", quiet=True)
    (first,) = plan.before
    first = replace(first, chunks={**first.chunks, next(iter(first.lengths)): 3})
    run = run_with_gaps(replace(plan, before=(first,)))
    assert [(skipped.step, skipped.chunk) for skipped in run.skipped] == [("picky", 0)]
    assert np.isnan(run.result[:3]).all()
    assert not np.isnan(run.result[3:]).any()


def test_an_unknown_policy_is_refused():
    with pytest.raises(InputError, match="on_error='ignore' is not known"):
        barrow.map(np.sqrt, DATA, on_error="ignore")
