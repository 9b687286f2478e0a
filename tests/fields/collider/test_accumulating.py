from collections import defaultdict

import numpy as np
import pytest

from barrow.errors import StepError
from barrow.fields.collider.accumulating import accumulate


def test_neither_of_two_answers_is_changed():
    one, other = {"a": [1], "b": {"c": 1}}, {"a": [2], "b": {"c": 2, "d": 3}}
    assert accumulate(one, other) == {"a": [1, 2], "b": {"c": 3, "d": 3}}
    assert (one, other) == ({"a": [1], "b": {"c": 1}}, {"a": [2], "b": {"c": 2, "d": 3}})


def test_dictionaries_with_values_of_their_own_stay_what_they_are():
    one = defaultdict(int, a=1)
    total = accumulate(one, {"a": 1, "b": 2})
    assert isinstance(total, defaultdict)
    assert total == {"a": 2, "b": 2}


def test_arrays_are_added_item_by_item():
    assert accumulate({"x": np.arange(3)}, {"x": np.ones(3)})["x"].tolist() == [1, 2, 3]


def test_what_cannot_be_added_is_named():
    with pytest.raises(StepError, match="int for one chunk and str") as caught:
        accumulate({"a": 1}, {"a": "1"})
    assert "under 'a'" in caught.value.__notes__[0]
