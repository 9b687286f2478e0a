"""Seconds of slots: each in one state, and none left over."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barrow.recording.accounting import STATES, Observed, account

times = st.floats(0, 100).map(lambda t: round(t, 3))
intervals = st.lists(st.tuples(times, times).map(sorted), max_size=20).map(
    lambda pairs: np.array(pairs, float).reshape(-1, 2)
)


@settings(deadline=None)
@given(st.builds(Observed, intervals, intervals, intervals, intervals, intervals))
def test_the_parts_add_up_to_slots_and_wall_whatever_happened(observed):
    spent = account(observed, 0.0, 100.0)
    assert all(seconds >= 0 for seconds in spent.values())
    total = sum(spent.values())
    assert total == pytest.approx(round(total / 100) * 100)
    assert set(spent) == set(STATES)


def test_a_worker_that_comes_late_is_starting_until_then():
    none = np.empty((0, 2))
    slots = np.array([[2.0, 10], [0, 10]])
    spent = account(Observed(slots, none, none, none, none), 0, 10)
    assert spent["starting"] == 2
    assert spent["idle"] == 18


def test_a_free_slot_waits_for_what_a_task_waits_for():
    seen = Observed(
        slots=np.array([[0.0, 10]]),
        compute=np.array([[5.0, 6]]),
        transfer=np.array([[2.0, 4]]),
        spill=np.array([[4.0, 5]]),
        waiting=np.array([[1.0, 5]]),
    )
    spent = account(seen, 0, 10)
    expected = {"compute": 1, "transfer": 2, "spill": 1, "overhead": 1, "idle": 5, "starting": 0}
    assert spent == expected
