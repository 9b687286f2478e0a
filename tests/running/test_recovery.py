"""What did not fit is split; what was lost is done again."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barrow.errors import BarrowError, BudgetError, ClusterError
from barrow.model.grid import Grid
from barrow.running.backlog import Backlog
from barrow.running.recovery import Recovery

GRID = Grid({"y": 80, "x": 60}, {"y": 40, "x": 60})


def recovery(cuttable=("y", "x"), grain=None):
    return Recovery("blur", GRID, cuttable, grain or {}, budget_bytes=10**9)


def drain(backlog, most=1000):
    found = []
    while not backlog.is_empty and len(found) < most:
        found.append(backlog.take(1))
    return found


def test_a_chunk_that_did_not_fit_comes_again_in_halves():
    backlog = Backlog(GRID)
    batch = backlog.take(1)
    message = recovery().on_memory(batch, backlog)
    again = backlog.take(1)
    assert again.units == batch.units
    assert prod(again.parts.values()) == 40 * 60 / 2
    assert "chunk 0 ([0:40, 0:60])" in message
    assert "1.00 GB" in message or "954 MiB" in message


def fail_for_ever(fail, backlog):
    """Let whatever comes first fail until nobody takes it any more; return what it was then."""
    batch = backlog.take(1)
    for _ in range(100):
        try:
            fail(batch, backlog)
        except BarrowError as error:
            return batch, error
        batch = backlog.take(1)
    raise AssertionError("it never ended")


def test_halves_are_halved_until_nothing_is_left_to_cut():
    batch, error = fail_for_ever(recovery(cuttable=("y",)).on_memory, Backlog(GRID))
    assert batch.parts == {"y": 1, "x": 60}
    assert isinstance(error, BudgetError)
    assert "'x' must be whole" in str(error)


def test_a_chunk_that_asks_for_as_much_however_small_it_is_ends_the_run_soon():
    asked = 10 * 2**30

    def fail(batch, backlog, followed=recovery()):  # noqa: B008 - one for all calls
        return followed.on_memory(batch, backlog, asked)

    batch, error = fail_for_ever(fail, Backlog(GRID))
    assert prod(batch.parts.values()) == 40 * 60 / 4
    assert isinstance(error, BudgetError)
    assert "it asked for 10.0 GiB at once" in str(error)
    assert "however small" in str(error)


def test_a_chunk_that_asks_for_less_when_it_is_smaller_is_split_on():
    backlog, followed = Backlog(GRID), recovery()
    batch = backlog.take(1)
    for times in range(6):
        followed.on_memory(batch, backlog, 100 * 2**30 // 2**times)
        batch = backlog.take(1)
    assert prod(batch.parts.values()) < 40 * 60 / 2**5


def test_a_chunk_that_asks_for_what_may_fit_beside_less_is_split_on():
    backlog, followed = Backlog(GRID), recovery()
    batch = backlog.take(1)
    for _ in range(6):  # each time as much, but no more than the budget
        followed.on_memory(batch, backlog, 10**9)
        batch = backlog.take(1)
    assert batch.parts


def test_what_cannot_be_split_gets_the_memory_of_all_tasks_once():
    backlog, followed = Backlog(GRID), recovery(cuttable=())
    followed.whole_bytes = 4 * 10**9
    followed.on_memory(backlog.take(1), backlog)
    again = backlog.take(1)
    assert (again.is_alone, again.budget_bytes) == (True, 4 * 10**9)
    with pytest.raises(BudgetError):
        followed.on_memory(again, backlog)


def test_several_chunks_that_did_not_fit_together_are_done_one_by_one():
    backlog = Backlog(Grid({"x": 10}, {"x": 1}))
    backlog.cut(cells=4)
    recovery().on_memory(backlog.take(1), backlog)
    assert [batch.units for batch in drain(backlog)] == [[range(n, n + 1)] for n in range(10)]


def test_what_was_handed_out_with_it_is_not_forgotten():
    backlog = Backlog(Grid({"x": 6}, {"x": 1}))
    batch = backlog.take(4)
    Recovery("f", backlog.grid, (), {}, 1).on_loss(batch, backlog)
    done = [number for batch in drain(backlog) for unit in batch.units for number in unit]
    assert sorted(done) == list(range(6))


def test_a_worker_lost_once_blames_nobody():
    backlog, followed = Backlog(GRID), recovery()
    batch = backlog.take(1)
    followed.on_loss(batch, backlog)
    again = backlog.take(1)
    assert again.units == batch.units
    assert not again.parts
    assert not again.is_alone


def test_a_chunk_that_kills_runs_alone_before_it_is_split():
    backlog, followed = Backlog(Grid({"x": 40}, {"x": 40})), recovery()
    followed.grid = backlog.grid
    followed.cuttable = ("x",)
    batch = backlog.take(1)
    seen = []
    for _ in range(3):
        followed.on_loss(batch, backlog)
        batch = backlog.take(1)
        seen.append((batch.is_alone, dict(batch.parts)))
    assert seen == [(False, {}), (True, {}), (True, {"x": 20})]


def test_a_chunk_that_kills_in_parts_too_is_soon_cut_small_and_then_blamed():
    grid = Grid({"x": 2**20}, {"x": 2**19})
    backlog, followed = Backlog(grid), Recovery("f", grid, ("x",), {}, 1)
    sizes, error = [], None
    while error is None:
        batch = backlog.take(1)
        sizes.append(batch.parts.get("x", 2**19))
        try:
            followed.on_loss(batch, backlog)
        except ClusterError as caught:
            error = caught
    assert sizes == [2**19, 2**19, 2**19, 2**18, 2**16, 2**13]
    assert "6 workers died while they had chunk 0" in str(error)
    assert "in parts of x 8192 as well" in str(error)


def test_a_chunk_that_cannot_be_split_ends_the_run_at_last():
    batch, error = fail_for_ever(recovery(cuttable=()).on_loss, Backlog(GRID))
    assert isinstance(error, ClusterError)
    assert batch.is_alone
    assert "chunk 0 ([0:40, 0:60])" in str(error)


@given(st.integers(2, 200), st.integers(0, 199))
def test_the_one_that_kills_is_found_among_many(count, culprit):
    culprit %= count
    backlog = Backlog(Grid({"x": count}, {"x": 1}))
    followed = Recovery("f", backlog.grid, (), {}, 1)
    deaths, done, error = 0, set(), None
    backlog.put_back(backlog.take(count))
    while error is None:
        batch = backlog.take(1)
        numbers = {number for unit in batch.units for number in unit}
        if culprit not in numbers:
            done |= numbers
            continue
        deaths += 1
        try:
            followed.on_loss(batch, backlog)
        except ClusterError as caught:
            error = caught
    assert f"chunk {culprit} " in str(error)
    assert deaths <= 20
    rest = {n for batch in drain(backlog) for unit in batch.units for n in unit}
    assert done | rest | {culprit} == set(range(count))


def test_when_many_chunks_do_not_fit_the_rest_is_split_at_once():
    backlog = Backlog(Grid({"y": 800, "x": 60}, {"y": 40, "x": 60}))
    followed = Recovery("f", backlog.grid, ("y",), {}, 1)
    message = None
    for _ in range(2):
        followed.on_memory(backlog.take(1), backlog)
        message = followed.on_done(backlog.take(1), 1, backlog) or message
    assert message == "2 chunks did not fit: the rest is split into y 20 × x 60."
    assert backlog.take(1).parts == {"y": 20, "x": 60}


def test_when_many_chunks_kill_those_that_wait_to_run_alone_are_split_too():
    grid = Grid({"y": 800}, {"y": 40})
    backlog, followed = Backlog(grid), Recovery("f", grid, ("y",), {}, 1)
    suspects = [backlog.take(1) for _ in range(4)]
    for _ in range(2):
        for suspect in suspects:
            followed.on_loss(suspect, backlog)
        suspects = [backlog.take(1) for _ in range(4)]
    for suspect in suspects[2:]:
        backlog.put_back(suspect)
    for suspect in suspects[:2]:
        followed.on_loss(suspect, backlog)
    followed.on_done(backlog.take(1), 1, backlog)
    assert [batch.parts for batch in drain(backlog, most=4)] == [{"y": 20}] * 4


def test_one_chunk_that_does_not_fit_is_the_only_one_split():
    backlog = Backlog(Grid({"y": 800, "x": 60}, {"y": 40, "x": 60}))
    followed = Recovery("f", backlog.grid, ("y",), {}, 1)
    followed.on_memory(backlog.take(1), backlog)
    assert followed.on_done(backlog.take(1), 1, backlog) is None
    assert not backlog.take(1).parts


@given(st.integers(1, 100), st.integers(1, 30), st.integers(1, 100))
def test_halves_are_whole_storage_chunks_as_long_as_possible(length, grain, x):
    grid = Grid({"y": length, "x": x}, {"y": length, "x": x})
    followed = Recovery("f", grid, ("y",), {"y": grain}, 1)
    parts: dict[str, int] = {}
    for _ in range(20):
        halved = followed.halve(range(1), parts)
        if halved is None:
            break
        assert halved["x"] == x
        assert halved["y"] < parts.get("y", length)
        assert halved["y"] % grain == 0 or halved["y"] < grain
        parts = halved
    assert parts.get("y", 1) == 1 or length == 1
