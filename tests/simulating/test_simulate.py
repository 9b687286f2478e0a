"""The simulation gives what can be computed by hand."""

from dataclasses import replace

import numpy as np
import pytest

from barrow.simulating import simulate as module
from barrow.simulating.load import Load, Stage
from barrow.simulating.simulate import put_together, simulate


def seconds(load, **stage):
    return simulate(load, Stage(**stage)).seconds


@pytest.mark.parametrize(("tasks", "workers", "rounds"), [(10, 5, 2), (11, 5, 3), (3, 8, 1)])
def test_equal_tasks_are_done_in_rounds(tasks, workers, rounds):
    assert seconds(Load(np.full(tasks, 2.0)), workers=workers) == pytest.approx(2.0 * rounds)


def test_one_worker_takes_the_sum_of_all_tasks_and_gaps():
    times = np.random.default_rng(0).exponential(1.0, 50)
    load = Load(times, wait_seconds=times / 3, gap_seconds=0.1, client_seconds=2.0)
    assert seconds(load, workers=1) == pytest.approx(2.0 + times.sum() * 4 / 3 + 50 * 0.1)


def test_threads_are_as_good_as_workers_where_nothing_is_shared():
    load = Load(np.full(12, 1.0))
    assert seconds(load, workers=2, threads=3) == seconds(load, workers=6) == 2.0


def test_the_scheduler_does_one_task_after_the_other():
    load = Load(np.full(100, 0.01), scheduler_seconds=0.1)
    assert seconds(load, workers=50) == pytest.approx(100 * 0.1 + 0.01)


def test_the_scheduler_is_ahead_of_workers_that_are_slow():
    load = Load(np.full(10, 1.0), scheduler_seconds=0.1)
    assert seconds(load, workers=1) == pytest.approx(0.1 + 10 * 1.0)


def test_cores_are_shared_by_more_workers():
    load = Load(np.full(8, 1.0))
    assert seconds(load, workers=4, cores=2) == pytest.approx(4.0)
    assert seconds(load, workers=8, cores=2) == pytest.approx(4.0)


def test_waiting_needs_no_core():
    load = Load(np.full(8, 0.5), wait_seconds=np.full(8, 1.5))
    assert seconds(load, workers=4, cores=4) == pytest.approx(4.0)
    # All wait together, then four halves of a second share one core.
    assert seconds(load, workers=4, cores=1) == pytest.approx(2 * (1.5 + 2.0))


def test_taking_turns_costs_a_share_of_the_cores():
    load = Load(np.ones(8), turning_share=0.2)
    assert seconds(load, workers=2, cores=2) == pytest.approx(4.0)
    assert seconds(load, workers=4, cores=2) == pytest.approx(4.0 / 0.8)


def test_a_scheduler_on_the_same_cores_takes_its_share():
    alone = Load(np.full(10, 1.0), scheduler_seconds=1.0, is_one_machine=False)
    shared = replace(alone, is_one_machine=True)
    assert seconds(shared, workers=1, cores=1) == pytest.approx(20.0)
    assert seconds(alone, workers=1, cores=1) == pytest.approx(11.0)


def test_every_worker_takes_its_share_of_the_cores_whatever_it_does():
    load = Load(np.full(8, 1.0), idle_share=0.1)
    two, many = (simulate(load, Stage(workers, cores=2.0)).seconds for workers in (2, 100))
    assert two == pytest.approx(8 / 1.8)
    assert many == pytest.approx(8.0)


def test_the_disk_is_shared_by_all_workers():
    load = Load(np.zeros(8), wait_seconds=np.ones(8), disk_bytes=np.full(8, 100.0))
    assert seconds(load, workers=4) == pytest.approx(2.0)
    assert seconds(load, workers=4, disk_bytes_per_second=200.0) == pytest.approx(4.0)
    assert seconds(load, workers=4, disk_bytes_per_second=1000.0) == pytest.approx(2.0)


def test_what_came_from_a_cache_takes_as_long_as_the_disk_that_is_told():
    load = Load(np.zeros(8), disk_bytes=np.full(8, 100.0))
    assert seconds(load, workers=4, disk_bytes_per_second=200.0) == pytest.approx(4.0)


def test_tasks_that_wait_for_one_another_do_not_scale():
    chain = Load(np.ones(4), after=np.array([-1, 0, 1, 2]), delay_seconds=np.zeros(4))
    assert seconds(chain, workers=4) == pytest.approx(4.0)


def test_a_client_that_thinks_between_two_tasks_makes_them_wait():
    load = Load(np.ones(2), after=np.array([-1, 0]), delay_seconds=np.array([0.5, 3.0]))
    assert seconds(load, workers=2) == pytest.approx(0.5 + 1 + 3 + 1)


def test_workers_that_come_late_do_less():
    load = Load(np.ones(10), start_seconds=np.array([4.0]))
    assert seconds(load, workers=5) == pytest.approx(4.0 + 2.0)


def test_tasks_disturb_each_other_on_crowded_cores():
    load = Load(np.full(8, 1.0), crowding=1.5)
    assert seconds(load, workers=1, cores=2) == pytest.approx(8.0)
    assert seconds(load, workers=2, cores=2) == pytest.approx(4 * 1.5)


def test_losses_cost_half_a_task_and_the_time_until_there_is_another_worker():
    load = Load(np.full(400, 1.0), losses_per_second=0.5, restart_seconds=3.0)
    found = simulate(load, Stage(workers=1), repeats=1).seconds
    # 200 are expected, each costs half a second and three.
    assert found == pytest.approx(400 + 200 * 3.5, rel=0.2)


def test_the_same_seed_gives_the_same_answer_and_another_one_another():
    load = Load(np.random.default_rng(1).exponential(1.0, 40), tasks=500)
    stage = Stage(workers=7)
    assert simulate(load, stage, seed=3) == simulate(load, stage, seed=3)
    assert simulate(load, stage, seed=3) != simulate(load, stage, seed=4)


def test_the_spread_covers_what_was_measured_and_is_nothing_for_equal_tasks():
    load = Load(np.random.default_rng(1).exponential(1.0, 200))
    found = simulate(load, Stage(workers=4))
    assert found.low_seconds < found.seconds < found.high_seconds
    equal = simulate(Load(np.ones(8)), Stage(workers=4))
    assert equal.low_seconds == equal.seconds == equal.high_seconds


@pytest.mark.parametrize("stage", [Stage(8), Stage(8, cores=5, disk_bytes_per_second=2000.0)])
def test_compiled_and_plain_loops_agree(stage, monkeypatch):
    pytest.importorskip("numba")
    rng = np.random.default_rng(2)
    load = Load(
        rng.exponential(1.0, 60),
        wait_seconds=rng.exponential(0.2, 60),
        disk_bytes=np.full(60, 100.0),
        scheduler_seconds=0.02,
        gap_seconds=0.01,
        after=np.maximum(np.arange(60) - 9, -1),
        delay_seconds=np.zeros(60),
    )
    plain = simulate(load, stage)
    monkeypatch.setattr(module, "MANY_TASKS", 1)
    assert simulate(load, stage).seconds == pytest.approx(plain.seconds)


def test_tasks_that_are_put_together_take_about_as_long():
    rng = np.random.default_rng(3)
    load = Load(rng.exponential(1.0, 100), tasks=20_000, scheduler_seconds=1e-4)
    whole = simulate(load, Stage(workers=20), repeats=1).seconds
    fewer = put_together(load, 2000)
    assert fewer.count == 2000
    assert simulate(fewer, Stage(workers=20), repeats=1).seconds == pytest.approx(whole, rel=0.1)
