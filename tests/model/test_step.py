import numpy as np
import pytest

import barrow
from barrow.errors import InputError

LENGTHS = {"c": 3, "y": 20, "x": 30}


def test_axis_numbers_and_names_mean_the_same():
    by_name = barrow.Step(np.sqrt, whole=("c",), halo={"x": 2}).resolved(LENGTHS)
    by_number = barrow.Step(np.sqrt, whole=(0,), halo={-1: (2, 2)}).resolved(LENGTHS)
    assert by_name.whole == by_number.whole == ("c",)
    assert by_name.halo == by_number.halo == {"x": (2, 2)}


@pytest.mark.parametrize("dim", ["z", 3, -4, True, None])
def test_an_unknown_dimension_is_refused_with_the_ones_there_are(dim):
    with pytest.raises(InputError, match="'c', 'y', 'x'"):
        barrow.Step(np.sqrt, whole=(dim,)).resolved(LENGTHS)


@pytest.mark.parametrize("width", [-1, 1.5, "2", (1, 2, 3), None])
def test_a_halo_must_be_a_whole_number_or_a_pair(width):
    with pytest.raises(InputError, match="not a width"):
        barrow.Step(np.sqrt, halo={"x": width}).resolved(LENGTHS)


@pytest.mark.parametrize(("border", "most"), [("reflect", 20), ("mirror", 19), (None, 20), (0, 20)])
def test_a_halo_may_be_as_large_as_the_data_and_no_larger(border, most):
    barrow.Step(np.sqrt, halo={"y": most}, border=border).resolved(LENGTHS)
    with pytest.raises(InputError, match=f"at most {most}"):
        barrow.Step(np.sqrt, halo={"y": most + 1}, border=border).resolved(LENGTHS)


def test_a_bare_number_as_halo_is_refused_with_the_way_to_write_it():
    with pytest.raises(InputError, match=r"halo=\{'y': 4, 'x': 4\}"):
        barrow.Step(np.sqrt, halo=4)


def test_an_unknown_border_is_refused():
    with pytest.raises(InputError, match="border='wrapped' is unknown"):
        barrow.Step(np.sqrt, border="wrapped")


def test_a_step_needs_a_function():
    with pytest.raises(InputError, match="must be a function"):
        barrow.Step(3)
