"""What a task reads is known from ranges alone."""

from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.model.applied import Form, apply_step
from barrow.model.reading import block_at, count_block_bytes, count_items, count_stored_bytes


def stored(shape, grain):
    source = barrow.open(np.zeros(shape, "u2"), dims=("y", "x"))
    return replace(source, grain=dict(zip(("y", "x"), grain, strict=True)))


def smoothed(source, halo):
    form = Form(source.lengths, source.dtype, frozenset(source.lengths), frozenset())
    step = barrow.Step(np.abs, halo=halo).resolved(source.lengths)
    return apply_step(step, [source], form)


def test_a_halo_is_read_too():
    target = smoothed(stored((100, 100), (1, 1)), {"y": 2, "x": 3})
    assert count_items(target, ((10, 20), (10, 20))) == 14 * 16
    assert count_block_bytes(target, ((10, 20), (10, 20))) == 2 * 14 * 16


def test_beyond_the_edge_nothing_is_read():
    target = smoothed(stored((100, 100), (1, 1)), {"y": 2, "x": 3})
    assert count_items(target, ((0, 10), (90, 100))) == 12 * 13


@pytest.mark.parametrize(
    ("ranges", "items"),
    [
        (((0, 10), (0, 10)), 100),
        (((0, 11), (0, 10)), 200),
        (((5, 15), (5, 15)), 400),
        (((20, 25), (20, 25)), 25),
        (((19, 25), (0, 1)), 150),
    ],
)
def test_storage_chunks_are_read_whole_but_end_with_the_data(ranges, items):
    assert count_stored_bytes(stored((25, 25), (10, 10)), ranges) == 2 * items


def test_a_place_is_found_for_blocks_of_any_size():
    source = stored((25, 7), (10, 10))
    for place in (0.0, 0.15, 0.5, 0.85, 0.999):
        for size in (1, 3, 7, 25, 99):
            block = block_at(source, {"y": size, "x": size}, place)
            assert [stop - start for start, stop in block] == [min(size, 25), min(size, 7)]
            assert all(
                0 <= start <= stop <= n for (start, stop), n in zip(block, (25, 7), strict=True)
            )
