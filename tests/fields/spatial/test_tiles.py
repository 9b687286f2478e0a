"""Tiles see enough around what they own, and put together they are the raster."""

from itertools import product

import numpy as np
import pytest

import barrow
from barrow.errors import InputError
from barrow.fields.spatial.joining import join_borders, mark_borders
from barrow.fields.spatial.tiles import Axis, Tiling, lay, put_together

AXES = [
    Axis(length, min(view, length), margin)
    for length, view, margin in product((1, 7, 20, 41), (1, 5, 9, 12, 30), (0, 1, 2, 4))
    if view >= length or view > 2 * margin
]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_views_own_every_pixel_once_and_see_the_margin_around_it(axis):
    owned = []
    for number in range(axis.count):
        first, last = axis.core(number)
        start, stop = axis.span(number)
        assert start <= max(0, first - axis.margin)
        assert stop >= min(axis.length, last + axis.margin)
        assert stop - start == axis.view or number == axis.count - 1
        assert [axis.at(place) for place in range(first, last)] == [number] * (last - first)
        owned += range(first, last)
    assert owned == list(range(axis.length))


def test_what_views_own_begins_at_multiples_of_its_length():
    axis = Axis(length=1000, view=140, margin=20)
    assert [axis.core(number)[0] for number in range(axis.count)] == list(range(0, 1000, 100))


def test_tiles_with_nothing_of_their_own_are_one_error():
    with pytest.raises(InputError, match="nothing of their own"):
        Axis(length=100, view=20, margin=10)


def test_views_put_together_are_the_raster():
    pixels = np.arange(37 * 53).reshape(37, 53)
    source = barrow.open(pixels, dims=("y", "x"))
    tiling = Tiling.cut(source.lengths, {"y": 14, "x": 20}, {"y": 3, "x": 5})
    laid = lay(source, tiling)
    views = barrow.open(laid.read(laid.everything), dims=("y", "x"))
    again = put_together(views, tiling)
    np.testing.assert_array_equal(again.read(again.everything), pixels)
    np.testing.assert_array_equal(again.read(((5, 30), (7, 44))), pixels[5:30, 7:44])


def test_each_view_is_read_once_to_join_what_borders_cut():
    pixels = np.zeros((60, 60), "u4")
    pixels[5:55, 28:33] = 1
    source = barrow.open(pixels, dims=("y", "x"))
    tiling = Tiling.cut(source.lengths, {"y": 24, "x": 24}, {"y": 4, "x": 4})
    laid = lay(source, tiling)
    labels = laid.read(laid.everything).copy()
    reads = []

    class Watched:
        def read(self, ranges):
            reads.append(ranges)
            (top, bottom), (left, right) = ranges
            # Every view has a name of its own for the object.
            return labels[top:bottom, left:right] * np.uint32(len(reads))

    unions = join_borders(Watched(), tiling)
    assert len(reads) == tiling.count == 16
    names = {unions.root(n) for n, r in enumerate(reads, 1) if labels[tuple(map(_cut, r))].any()}
    assert len(names) == 1


def test_where_both_sides_of_a_border_agree_nothing_is_read():
    pixels = np.zeros((60, 60), "u4")
    pixels[18:26, 3:8] = 7  # crosses a border between tiles along y
    pixels[36:42, 13:18] = 9  # and this one along x
    source = barrow.open(pixels, dims=("y", "x"))
    tiling = Tiling.cut(source.lengths, {"y": 24, "x": 24}, {"y": 4, "x": 4})
    views = lay(source, tiling)
    axes = tiling.axes.values()
    marks, labels = {}, views.read(views.everything).copy()
    for numbers in np.ndindex(4, 4):
        slots = [slice(*axis.slot(n)) for axis, n in zip(axes, numbers, strict=True)]
        if numbers == (2, 1):
            labels[tuple(slots)][labels[tuple(slots)] == 9] = 8  # it has another name for it
        marks[numbers] = mark_borders(labels[tuple(slots)], tiling, numbers)
    reads = []

    class Watched:
        def read(self, ranges):
            reads.append(ranges)
            return labels[tuple(map(_cut, ranges))]

    unions = join_borders(Watched(), tiling, marks)
    assert unions.root(9) == unions.root(8)
    assert [tuple(low // 24 for low, _ in ranges) for ranges in reads] == [(2, 0), (2, 1)]
    del marks[0, 0]
    join_borders(Watched(), tiling, marks)
    assert len(reads) == 2 + 5, "also the one that was not marked, and its two neighbours"


def _cut(bounds):
    return slice(*bounds)
