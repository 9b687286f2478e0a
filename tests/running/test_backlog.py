"""What is handed out is a block, is handed out once, and was not finished before."""

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from barrow.model.grid import Grid
from barrow.running.backlog import Backlog


@given(
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    widths=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    finished=st.sets(st.integers(0, 215), max_size=20),
)
def test_every_chunk_is_handed_out_once_in_units_that_are_blocks(counts, widths, finished):
    lengths = {f"d{index}": 2 * count - 1 for index, count in enumerate(counts)}
    grid = Grid(lengths, dict.fromkeys(lengths, 2))
    finished = {number for number in finished if number < len(grid)}
    backlog = Backlog(grid, finished)
    given_out = []
    while backlog.left:
        backlog.cut(widths[len(given_out) % len(widths)])
        for unit in backlog.take(2).units:
            assert len(unit) <= backlog.cells
            items = sum(
                prod(stop - start for start, stop in grid.ranges(number)) for number in unit
            )
            assert items == prod(stop - start for start, stop in grid.block(unit))
            given_out += unit
    assert given_out == [number for number in range(len(grid)) if number not in finished]


def test_units_are_as_long_as_rows_allow():
    backlog = Backlog(Grid({"y": 6, "x": 5}, {"y": 1, "x": 1}))
    backlog.take(3)
    backlog.cut(12)
    assert backlog.take(9).units == [range(3, 5), range(5, 15), range(15, 25), range(25, 30)]


def test_a_billion_chunks_take_no_time_and_no_memory():
    backlog = Backlog(Grid({"x": 10**9}, {"x": 1}))
    backlog.cut(1000)
    assert backlog.take(2).units == [range(1000), range(1000, 2000)]
    assert backlog.left == 10**9 - 2000
