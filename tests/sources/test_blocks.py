"""Blocks of any lengths."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from barrow.sources.blocks import Layout, choose_grain

sizes = st.lists(st.integers(0, 5), min_size=1, max_size=5)


@st.composite
def layouts_and_ranges(draw):
    chunks = draw(st.lists(sizes, max_size=3))
    ranges = []
    for lengths in chunks:
        start = draw(st.integers(0, sum(lengths)))
        ranges.append((start, draw(st.integers(start, sum(lengths)))))
    return chunks, tuple(ranges)


def put_together(layout, chunks, ranges, values):
    answer = np.full([stop - start for start, stop in ranges], -1)
    edges = [np.cumsum([0, *lengths]) for lengths in chunks]
    for part in layout.overlaps(ranges):
        corner = [axis[number] for axis, number in zip(edges, part.index, strict=True)]
        whole = tuple(slice(low, low + n) for low, n in zip(corner, part.shape, strict=True))
        answer[part.outside] = values[whole][part.inside]
    return answer


@given(layouts_and_ranges())
def test_the_overlaps_put_together_are_the_range(case):
    chunks, ranges = case
    values = np.arange(np.prod([sum(c) for c in chunks], dtype=int))
    values = values.reshape([sum(c) for c in chunks])
    expected = values[tuple(slice(*pair) for pair in ranges)]
    layout = Layout.of_chunks(chunks)
    for used in (layout, layout.cropped(ranges)):
        assert np.array_equal(put_together(used, chunks, ranges, values), expected)


@given(layouts_and_ranges())
def test_no_block_is_touched_in_vain(case):
    chunks, ranges = case
    for part in Layout.of_chunks(chunks).overlaps(ranges):
        assert all(piece.stop > piece.start for piece in part.inside)


def test_a_cropped_layout_is_as_small_as_its_range():
    layout = Layout.of_chunks([(10,) * 100_000]).cropped(((500, 520),))
    assert layout.bounds == ((500, 510, 520),)
    assert layout.first == (50,)


@given(sizes)
def test_a_grain_is_never_longer_than_the_longest_block(lengths):
    assert 1 <= choose_grain(lengths) <= max(1, *lengths)


def test_equal_blocks_have_their_length_as_grain():
    assert choose_grain((7, 7, 7, 2)) == 7
    assert choose_grain((7,)) == 7
    assert choose_grain((0,)) == 1


def test_unequal_blocks_have_a_grain_that_meets_their_boundaries():
    assert choose_grain((100, 50, 100, 20)) == 50
    assert choose_grain((60, 90, 60)) == 30


def test_blocks_with_nothing_in_common_have_their_usual_length_as_grain():
    assert choose_grain((37, 100, 100, 63)) == 100
