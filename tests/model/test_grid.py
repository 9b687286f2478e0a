import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barrow.errors import InputError
from barrow.model.grid import Grid

shapes = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 12)), max_size=4)


@given(shapes)
def test_the_chunks_cover_everything_once(shape):
    lengths = {f"d{axis}": length for axis, (length, _) in enumerate(shape)}
    chunk = {f"d{axis}": size for axis, (_, size) in enumerate(shape)}
    seen = np.zeros([length for length, _ in shape], int)
    for ranges in Grid(lengths, chunk):
        seen[tuple(slice(start, stop) for start, stop in ranges)] += 1
    assert (seen == 1).all()


def test_ten_million_chunks_take_no_list():
    grid = Grid({"x": 10**7}, {"x": 1})
    assert len(grid) == 10**7
    assert grid.ranges(9_999_999) == ((9_999_999, 10_000_000),)


def test_an_empty_dimension_is_one_empty_chunk():
    assert list(Grid({"y": 0, "x": 4}, {"y": 0, "x": 2})) == [((0, 0), (0, 2)), ((0, 0), (2, 4))]


@pytest.mark.parametrize("chunk", [{"x": 0}, {"x": -2}, {"x": 1.5}, {"z": 2}])
def test_impossible_chunks_are_refused(chunk):
    with pytest.raises(InputError):
        Grid({"x": 10}, chunk)
