"""Plans are pure: numbers in, the best way out."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

import barrow
from barrow.errors import BudgetError
from barrow.model.applied import Form, apply_step
from barrow.model.cost import Cost
from barrow.model.site import Machine, Offer, Site
from barrow.planning.planner import make_plan

MACHINE = Machine("here", cores=4, total_bytes=16 * 2**30, available_bytes=10 * 2**30)
HERE = Site("process", MACHINE)
# 10 ns for each item, whatever the size; 16 bytes for each.
STEADY = Cost(points=((10**3, 1e-5), (10**7, 1e-1)), peak_per_item=16.0)
LOCKED = ((1, 4.0),)


def plan(cost=STEADY, site=HERE, lengths=None, grain=None, **options):
    lengths = lengths or {"y": 20_000, "x": 10_000}
    source = barrow.open(
        np.broadcast_to(np.float32(0), tuple(lengths.values())), dims=tuple(lengths)
    )
    source = replace(source, grain=grain or {})
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


def test_what_needs_most_of_a_worker_runs_there_one_at_a_time():
    site = Site("dask", MACHINE, workers=1, threads=4, limit_bytes=10**9)
    large = replace(STEADY, peak_base_bytes=6e8)
    found = plan(large, site=site)
    assert (found.workers, found.threads, found.slots) == (1, 1, 1)
    assert found.peak_bound_bytes <= found.budget_bytes
    assert any("1 task at once, not more" in reason for reason in found.reasons)


def test_what_should_fit_a_whole_worker_is_tried_even_if_it_is_not_certain():
    site = Site("dask", MACHINE, workers=1, threads=4, limit_bytes=10**9)
    doubtful = replace(STEADY, peak_base_bytes=6e8, peak_margin=0.3)
    found = plan(doubtful, site=site)
    assert found.peak_bytes <= found.budget_bytes < found.peak_bound_bytes
    assert found.slots == 1
    assert any("it is tried" in reason for reason in found.reasons)
    with pytest.raises(BudgetError):
        plan(replace(doubtful, peak_base_bytes=8e8), site=site)


def test_what_fits_in_every_thread_has_every_thread():
    site = Site("dask", MACHINE, workers=1, threads=4, limit_bytes=10**9)
    found = plan(site=site)
    assert (found.threads, found.slots, found.at_once) == (4, 4, 0)


def test_what_only_the_large_workers_can_hold_runs_on_them():
    crew = {"a": Offer(2, 10**9), "b": Offer(2, 8 * 10**9), "c": Offer(1, 8 * 10**9)}
    site = Site("dask", MACHINE, workers=3, threads=1, limit_bytes=10**9, crew=crew)
    found = plan(replace(STEADY, peak_base_bytes=2e9), site=site)
    assert (found.workers, found.threads, found.slots) == (2, 2, 3)
    assert "3 tasks at once" in str(found)


def test_what_others_keep_in_a_worker_is_not_planned_with():
    crew = {"a": Offer(1, 10**9, held_bytes=5 * 10**8)}
    site = Site("dask", MACHINE, workers=1, threads=1, limit_bytes=10**9, crew=crew)
    assert plan(site=site).budget_bytes <= 3 * 10**8


def test_no_worker_processes_where_an_interpreter_would_not_fit():
    slow = replace(STEADY, points=((10**3, 1e-4), (10**7, 1.0)), thread_slowdown=LOCKED)
    found = plan(slow, lengths={"y": 1000, "x": 10_000}, memory_bytes=150 * 10**6)
    assert found.engine != "processes"


def test_the_reasons_name_the_runner_up_and_its_time():
    assert any("next best" in reason for reason in plan().reasons)


def test_writing_counts():
    stored = replace(STEADY, write_seconds_per_byte=1e-8)
    assert plan(stored, wants_store=True).seconds > 1.5 * plan(wants_store=True).seconds


def test_what_would_not_pay_is_done_one_after_the_other_and_the_plan_says_so():
    crowded = replace(STEADY, thread_slowdown=((1, 3.9),))
    found = plan(crowded, lengths={"y": 1000, "x": 10_000})
    assert found.engine == "inline"
    assert any("would not pay" in reason for reason in found.reasons)


def test_crowding_that_depends_on_size_decides_the_size():
    # Small tasks wait for one another, large ones do not.
    crowded = replace(STEADY, thread_slowdown=((10**5, 4.0), (4 * 10**6, 1.0)))
    assert prod(plan(crowded).chunks.values()) >= 2 * 10**6


def test_storage_chunks_are_not_read_twice():
    slow_disk = replace(STEADY, read_seconds_per_byte=1e-7)
    found = plan(slow_disk, grain={"y": 700, "x": 1100})
    assert found.chunks["y"] % 700 == 0 or found.chunks["y"] == 20_000
    assert found.chunks["x"] % 1100 == 0 or found.chunks["x"] == 10_000


def test_large_storage_chunks_are_walked_in_strides_when_small_blocks_are_faster():
    caches = replace(STEADY, points=((10**5, 1e-3), (10**6, 1e-2), (10**7, 1.0)))
    found = plan(caches, grain={"y": 4000, "x": 5000})
    assert found.strides
    assert prod(found.strides.values()) <= 2 * 10**6
    assert found.chunks["y"] % 4000 == 0
    assert any("walks its chunk" in reason for reason in found.reasons)


def test_a_storage_chunk_too_large_to_work_on_at_once_is_still_read_once():
    hungry = replace(STEADY, peak_per_item=400.0, read_seconds_per_byte=1e-8)
    found = plan(hungry, grain={"y": 5000, "x": 5000}, memory_bytes=2 * 10**9, wants_store=True)
    assert found.chunks["y"] % 5000 == 0
    assert found.strides
    assert found.peak_bound_bytes <= found.budget_bytes


def test_a_million_shapes_are_not_tried_one_by_one(monkeypatch):
    from barrow.planning import candidates

    counted = []

    def count(target, ranges):
        counted.append(ranges)
        return prod(stop - start for start, stop in ranges)

    monkeypatch.setattr(candidates, "count_items", count)
    plan(lengths={"t": 10**5, "c": 64, "z": 512, "y": 8192, "x": 8192}, wants_store=True)
    assert len(counted) < 1000
