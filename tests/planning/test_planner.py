"""Plans are pure: numbers in, the best way out."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

import barrow
from barrow.errors import BudgetError
from barrow.model.applied import Form, apply_step
from barrow.model.cost import Cost
from barrow.model.site import Machine, Site
from barrow.planning.planner import make_plan

MACHINE = Machine("here", cores=4, total_bytes=16 * 2**30, available_bytes=10 * 2**30)
HERE = Site("process", MACHINE)
# 10 ns for each item, whatever the size; 16 bytes for each.
STEADY = Cost(points=((10**3, 1e-5), (10**7, 1e-1)), peak_per_item=16.0)
LOCKED = ((1, 4.0),)


def plan(cost=STEADY, site=HERE, lengths=None, **options):
    lengths = lengths or {"y": 20_000, "x": 10_000}
    source = barrow.open(
        np.broadcast_to(np.float32(0), tuple(lengths.values())), dims=tuple(lengths)
    )
    form = Form(source.lengths, source.dtype, frozenset(lengths), frozenset())
    target = apply_step(barrow.Step(np.sqrt), [source], form)
    settings = {"memory_bytes": None, "wants_store": False, "may_be_parallel": True, **options}
    return make_plan(target, cost=cost, site=site, **settings)


def test_the_same_numbers_give_the_same_plan():
    assert plan() == plan()


def test_threads_are_used_when_they_help():
    assert plan().engine == "threads"
    assert plan().n_chunks >= 4


def test_processes_are_used_when_threads_would_wait_for_each_other():
    slow = replace(STEADY, points=((10**3, 1e-4), (10**7, 1.0)), thread_slowdown=LOCKED)
    assert plan(slow).engine == "processes"


def test_short_work_that_holds_the_lock_stays_in_line():
    locked = replace(STEADY, thread_slowdown=LOCKED)
    assert plan(locked, lengths={"y": 1000, "x": 10_000}).engine == "inline"


def test_chunks_go_where_time_for_each_item_is_least():
    # Twice as dear beyond a million items, as when a chunk leaves the caches.
    caches = replace(STEADY, points=((10**4, 1e-4), (10**6, 1e-2), (4 * 10**6, 8e-2)))
    found = plan(caches)
    assert 10**5 <= prod(found.chunks.values()) <= 2 * 10**6


def test_a_price_for_each_task_makes_chunks_larger():
    dear = replace(STEADY, points=((10**3, 1e-2), (10**5, 1.1e-2), (10**7, 0.11)))
    assert prod(plan(dear).chunks.values()) >= 5 * 10**6


def test_the_bound_of_the_peak_fits_the_budget():
    hungry = replace(STEADY, peak_per_item=4000.0, peak_margin=0.5)
    found = plan(hungry, memory_bytes=10**9)
    assert found.peak_bytes < found.peak_bound_bytes <= found.budget_bytes


def test_when_nothing_fits_for_many_tasks_fewer_may_still():
    greedy = replace(STEADY, peak_base_bytes=3e9)
    assert plan(greedy).engine == "inline"


def test_when_nothing_fits_at_all_the_error_says_what_would():
    with pytest.raises(BudgetError, match="Allow more than"):
        plan(replace(STEADY, peak_per_item=1e12))


def test_a_cluster_that_is_up_is_used_with_its_limits():
    site = Site("dask", MACHINE, workers=2, threads=1, limit_bytes=2 * 10**9)
    found = plan(site=site)
    assert (found.engine, found.workers, found.threads) == ("dask", 2, 1)
    assert found.budget_bytes < 2 * 10**9


def test_no_worker_processes_where_an_interpreter_would_not_fit():
    slow = replace(STEADY, points=((10**3, 1e-4), (10**7, 1.0)), thread_slowdown=LOCKED)
    found = plan(slow, lengths={"y": 1000, "x": 10_000}, memory_bytes=150 * 10**6)
    assert found.engine != "processes"


def test_the_reasons_name_the_runner_up_and_its_time():
    assert any("next best" in reason for reason in plan().reasons)


def test_writing_counts():
    stored = replace(STEADY, write_seconds_per_byte=1e-8)
    assert plan(stored, wants_store=True).seconds > 1.5 * plan(wants_store=True).seconds
