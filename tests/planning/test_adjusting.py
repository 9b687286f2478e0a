"""Chunks not yet begun are cut another way when that is clearly better: numbers in, numbers out."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

import barrow
from barrow.model.applied import Form, apply_step
from barrow.model.cost import Cost
from barrow.model.site import Machine, Site
from barrow.planning.adjusting import UNITS_LEFT_PER_SLOT, Cut, adjust, unit_block
from barrow.planning.planner import make_plan

HERE = Site("process", Machine("here", cores=2, total_bytes=2**34, available_bytes=2**33))
CELLS = Cut(1, {})


def plan_of(cost, chunks, lengths=None, combine=None, **changes):
    lengths = lengths or {"y": 1000, "x": 1000}
    source = barrow.open(
        np.broadcast_to(np.float32(0), tuple(lengths.values())), dims=tuple(lengths)
    )
    form = Form(source.lengths, source.dtype, frozenset(lengths), frozenset())
    target = apply_step(barrow.Step(np.sqrt, combine=combine), [source], form)
    made = make_plan(
        target,
        cost=cost,
        site=HERE,
        memory_bytes=None,
        wants_store=False,
        may_be_parallel=False,
    )
    return replace(made, chunks=chunks, strides={}, **changes)


# 1 ns for each item: a chunk of 100 items takes 0.1 µs, handing it out 50 µs.
QUICK = Cost(points=((100, 1e-7), (10**6, 1e-3)), peak_per_item=16.0)
# 1 ms for each item: nothing but the function matters.
SLOW = Cost(points=((100, 0.1), (10**6, 1000.0)), peak_per_item=16.0)
# 1 µs for each item in small blocks, 20 µs in large ones.
CACHED = Cost(points=((1000, 1e-3), (10**4, 1e-2), (10**6, 20.0)), peak_per_item=16.0)
TINY = {"y": 10, "x": 10}


def test_chunks_that_cost_less_than_handing_them_out_are_put_together():
    change = adjust(plan_of(QUICK, TINY), QUICK, cells_left=9000, now=CELLS)
    assert change.cut.cells >= 16
    assert not change.cut.strides
    assert change.seconds_after < 0.5 * change.seconds_before


def test_the_sentence_gives_the_numbers():
    plan = plan_of(QUICK, TINY, task_seconds=0.1)
    change = adjust(plan, QUICK, cells_left=9000, now=CELLS)
    assert "100 ms were predicted" in change.message
    assert f"{change.cut.cells} chunks are computed at once" in change.message
    assert "instead of" in change.message
    assert change.details()["cells"] == change.cut.cells


def test_chunks_are_put_together_no_further_than_it_helps():
    change = adjust(plan_of(QUICK, TINY), QUICK, cells_left=9000, now=CELLS)
    assert change.cut.cells < 9000 // UNITS_LEFT_PER_SLOT


def test_long_chunks_stay_as_they_are():
    assert adjust(plan_of(SLOW, TINY), SLOW, cells_left=9000, now=CELLS) is None


def test_nothing_changes_for_the_sake_of_a_moment():
    assert adjust(plan_of(QUICK, TINY), QUICK, cells_left=1000, now=CELLS) is None


@pytest.mark.parametrize("budget", [2**20 + 10**4, 2**20 + 10**5, 2**21])
def test_what_is_put_together_fits_the_budget(budget):
    plan = plan_of(QUICK, TINY, budget_bytes=budget)
    change = adjust(plan, QUICK, cells_left=9000, now=CELLS)
    items = prod(unit_block(plan.grid, change.cut.cells).values())
    assert QUICK.peak_bound(items) <= budget


def test_without_room_for_two_chunks_nothing_is_put_together():
    plan = plan_of(QUICK, TINY, budget_bytes=int(QUICK.peak_bound(150)))
    assert adjust(plan, QUICK, cells_left=9000, now=CELLS) is None


@pytest.mark.parametrize("slots", [1, 8, 64])
def test_enough_units_are_left_for_all_who_work(slots):
    plan = plan_of(QUICK, TINY, engine="threads", threads=slots, cores=slots)
    change = adjust(plan, QUICK, cells_left=9000, now=CELLS)
    assert 9000 / change.cut.cells >= UNITS_LEFT_PER_SLOT * slots


def test_a_reduction_keeps_its_chunks():
    plan = plan_of(QUICK, TINY, combine=np.add)
    assert adjust(plan, QUICK, cells_left=9000, now=CELLS) is None


def test_a_function_that_is_fast_on_small_blocks_walks_its_chunks_in_strides():
    plan = plan_of(SLOW, {"y": 500, "x": 1000})
    change = adjust(plan, CACHED, cells_left=2, now=CELLS)
    assert change.cut.cells == 1
    assert 1000 <= prod(change.cut.strides.values()) <= 2 * 10**4
    assert "is walked in blocks of" in change.message


def test_strides_are_dropped_when_they_turn_out_to_cost_more():
    plan = replace(plan_of(CACHED, {"y": 500, "x": 1000}), strides={"y": 1, "x": 10})
    dear_calls = Cost(points=((10, 1e-3), (10**6, 2e-3)), peak_per_item=16.0)
    change = adjust(plan, dear_calls, cells_left=2, now=Cut(1, plan.strides))
    assert change.cut == Cut(1, {})


def test_what_was_put_together_is_taken_apart_when_it_was_too_much():
    plan = plan_of(CACHED, {"y": 10, "x": 100})
    change = adjust(plan, CACHED, cells_left=900, now=Cut(200, {}))
    assert change.cut.cells < 20
