"""What was measured corrects what was predicted."""

import pytest

from barrow.model.cost import Cost
from barrow.planning.refining import Measured, refine

COST = Cost(
    points=((1000, 0.001), (100_000, 0.1)), read_seconds_per_byte=1e-9, write_seconds_per_byte=2e-9
)


def seen(**changes):
    usual = {
        "items": 10_000,
        "calls": 1,
        "slowdown": 1.0,
        "compute_seconds": 0.01,
        "read_seconds": 0.0,
        "stored_bytes": 0,
        "write_seconds": 0.0,
        "written_bytes": 0,
    }
    return Measured(**{**usual, **changes})


def test_a_right_prediction_stays():
    assert refine(COST, seen()).seconds(10_000) == pytest.approx(0.01)
    assert refine(COST, seen()).seconds(1000) == pytest.approx(0.001)


def test_with_full_weight_the_measured_time_is_taken():
    learnt = refine(COST, seen(compute_seconds=0.04), weight=1.0)
    assert learnt.seconds(10_000) == pytest.approx(0.04)


def test_with_half_weight_it_lies_between():
    assert refine(COST, seen(compute_seconds=0.04)).seconds(10_000) == pytest.approx(0.02)


def test_time_lost_to_neighbours_is_not_the_functions_own():
    crowded = seen(compute_seconds=0.02, slowdown=2.0)
    assert refine(COST, crowded, weight=1.0).seconds(10_000) == pytest.approx(0.01)


def test_a_task_of_several_calls_counts_each():
    strides = seen(items=1000, calls=10, compute_seconds=0.01)
    assert refine(COST, strides, weight=1.0).seconds(1000) == pytest.approx(0.001)


def test_points_of_about_the_same_size_are_replaced_not_gathered():
    cost = COST
    for items in (9000, 10_000, 11_000, 10_500):
        cost = refine(cost, seen(items=items))
    assert len(cost.points) == 3


def test_reading_and_writing_are_learnt_only_where_something_was_read_or_written():
    learnt = refine(COST, seen(read_seconds=4.0, stored_bytes=10**9), weight=1.0)
    assert learnt.read_seconds_per_byte == pytest.approx(4e-9)
    assert learnt.write_seconds_per_byte == COST.write_seconds_per_byte


def test_what_was_never_measured_stays_so():
    assert not refine(Cost(), seen()).is_measured
