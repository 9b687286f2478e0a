"""With more workers, inputs of a task lie on several of them."""

import numpy as np
import pytest

from barrow.forecasting.fetching import FETCH_SECONDS, move_inputs
from barrow.simulating.load import Load


def test_tasks_with_several_inputs_have_to_ask_for_them():
    moved = move_inputs(Load(np.ones(3)), np.array([0, 1, 2]), before=1, workers=4)
    assert moved.waits == pytest.approx([0.0, 0.0, 0.75 * FETCH_SECONDS])


def test_what_was_asked_for_before_is_not_counted_twice():
    load, inputs = Load(np.ones(2), wait_seconds=np.array([0.1, 0.0])), np.array([5, 5])
    assert move_inputs(load, inputs, before=3, workers=3).waits == pytest.approx([0.1, 0.0])
    fewer = move_inputs(load, inputs, before=3, workers=1).waits
    assert fewer[0] < 0.1
    assert fewer[1] == 0.0


def test_nothing_changes_where_nobody_knows_the_inputs():
    load = Load(np.ones(2))
    assert move_inputs(load, np.zeros(0), before=1, workers=8) is load
