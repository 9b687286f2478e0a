"""A run learns from its chunks, and thinks only when there is something to think about."""

from dataclasses import dataclass, replace

import numpy as np

import barrow
from barrow.model.cost import Cost
from barrow.planning.learning import LEAST_UNITS, MOST_CHANGES, Learner

# What was believed: 100 ms for each chunk of 100 items.
DEAR = Cost(points=((100, 0.1), (10**6, 1000.0)), peak_per_item=16.0)


@dataclass
class Unit:
    """A unit that is done; its times are made up."""

    number: int
    compute_seconds: float
    written_bytes: int = 800
    cells: int = 1
    read_seconds: float = 0.0
    write_seconds: float = 0.0


def learner(cost=DEAR):
    plan = barrow.plan(np.sqrt, np.zeros((1000, 1000)), quiet=True, cluster=False)
    chunks = {"dim_0": 10, "dim_1": 10}
    return Learner(replace(plan, chunks=chunks, strides={}, cost=cost, task_seconds=0.1))


def units(count, seconds, first=0):
    return [Unit(first + index, seconds) for index in range(count)]


def test_quick_chunks_that_should_have_been_slow_are_put_together():
    found = learner()
    found.see(units(1000, 1e-4))
    change = found.propose(cells_left=9000, first=1000)
    assert change.cut.cells > 1
    assert found.n_changes == 1


def test_a_cost_that_was_never_measured_is_learnt_from_nothing():
    found = learner(Cost(peak_per_item=16.0))
    found.see(units(1000, 1e-5))
    assert found.propose(cells_left=9000, first=1000).cut.cells > 1


def test_chunks_as_slow_as_predicted_stay():
    found = learner()
    found.see(units(50, 0.1))
    assert found.propose(cells_left=9000, first=50) is None


def test_a_few_chunks_say_nothing():
    found = learner()
    found.see(units(LEAST_UNITS - 1, 1.0))
    assert found.propose(cells_left=9000, first=50) is None


def test_data_whose_first_part_is_dear_are_noticed_later():
    found = learner()
    found.see(units(20, 0.1))
    assert found.propose(cells_left=9980, first=20) is None
    found.see(units(1000, 1e-5, first=20))
    assert found.propose(cells_left=9000, first=1020).cut.cells > 1


def test_chunks_that_were_cut_before_a_change_do_not_count_after_it():
    found = learner()
    found.see(units(1000, 1e-4))
    found.propose(cells_left=9000, first=1500)
    found.see(units(500, 100.0, first=1000))
    assert found.propose(cells_left=8500, first=1500) is None


def test_a_run_does_not_change_its_mind_for_ever():
    found = learner()
    first = 0
    for turn in range(50):
        cells = found._cut.cells
        seconds = (1e-6, 1.0)[turn % 2] * cells
        for index in range(1000):
            found.see([Unit(first + index * cells, seconds, 800 * cells, cells)])
        first += 1000 * cells
        found.propose(cells_left=9000, first=first)
    assert found.n_changes <= MOST_CHANGES
