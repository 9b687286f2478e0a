"""Stored chunks belong to one task each, and suit whoever reads them."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barrow.model.grid import Grid
from barrow.planning.stored import (
    HANDY_BYTES,
    LARGEST_BYTES,
    READER_BYTES,
    SMALLEST_BYTES,
    choose_between,
    choose_stored_chunks,
    divides,
    least_chunk,
)

MOVIE = {"frame": 18_000, "height": 480, "width": 752}


@st.composite
def exchanges(draw):
    """Return lengths, the chunk of the writer, what the reader cuts, and the size of an item."""
    dims = draw(st.sampled_from([("x",), ("y", "x"), ("frame", "height", "width")]))
    lengths = {dim: draw(st.integers(1, 3000)) for dim in dims}
    chunk = {dim: draw(st.integers(1, length)) for dim, length in lengths.items()}
    cuts = draw(st.sets(st.sampled_from(dims)))
    return lengths, chunk, cuts, draw(st.sampled_from([1, 2, 4, 8]))


def owners(stored, chunk, lengths):
    """Return, slowly, whether each stored chunk lies in one chunk of the writer."""
    for dim, length in lengths.items():
        of_task = [start // chunk[dim] for start in range(length)]
        for start in range(0, length, stored[dim]):
            if len(set(of_task[start : start + stored[dim]])) > 1:
                return False
    return True


@given(exchanges())
def test_no_two_tasks_share_a_stored_chunk(given_sizes):
    lengths, chunk, cuts, itemsize = given_sizes
    stored = choose_between(chunk, lengths=lengths, reader_cuts=cuts, itemsize=itemsize)
    assert divides(stored, chunk, lengths)
    assert owners(stored, chunk, lengths)


@given(exchanges())
def test_dividing_is_the_same_as_never_sharing(given_sizes):
    lengths, chunk, cuts, _ = given_sizes
    stored = {dim: max(1, chunk[dim] // (2 if dim in cuts else 1)) for dim in chunk}
    if divides(stored, chunk, lengths):
        assert owners(stored, chunk, lengths)


@given(exchanges())
def test_stored_chunks_are_neither_tiny_nor_huge(given_sizes):
    lengths, chunk, cuts, itemsize = given_sizes
    stored = choose_between(chunk, lengths=lengths, reader_cuts=cuts, itemsize=itemsize)
    size = prod(stored.values()) * itemsize
    # Where a chunk has no part of a sensible size, a file that is too large is better than many.
    primes = [n for n in chunk.values() if n > 100 and all(n % d for d in range(2, 60))]
    assert size <= LARGEST_BYTES or primes
    assert size >= min(SMALLEST_BYTES, prod(chunk.values()) * itemsize) or size > HANDY_BYTES


@given(exchanges())
def test_the_reader_can_hold_what_it_reads_unless_stored_chunks_would_be_tiny(given_sizes):
    lengths, _, cuts, itemsize = given_sizes
    # A writer that keeps everything whole can store it in tiles of any size.
    stored = choose_between(lengths, lengths=lengths, reader_cuts=cuts, itemsize=itemsize)
    whole = prod(n for dim, n in lengths.items() if dim not in cuts)
    held = prod(n for dim, n in stored.items() if dim in cuts) * whole * itemsize
    size = prod(stored.values()) * itemsize
    assert held <= READER_BYTES or size < 4 * SMALLEST_BYTES or cuts == set()


def test_frames_are_written_together_and_pixels_read_in_tiles():
    stored = choose_between(
        {**MOVIE, "frame": 100}, lengths=MOVIE, reader_cuts=("height", "width"), itemsize=4
    )
    assert stored["frame"] == 100
    assert stored["height"] < 480
    assert stored["width"] < 752
    assert MOVIE["frame"] * stored["height"] * stored["width"] * 4 <= READER_BYTES


def test_a_reader_with_little_memory_gets_smaller_tiles():
    chunk = {**MOVIE, "frame": 500}
    sizes = [
        prod(
            choose_between(
                chunk,
                lengths=MOVIE,
                reader_cuts=("height", "width"),
                itemsize=4,
                reader_bytes=reader_bytes,
            ).values()
        )
        for reader_bytes in (2**24, 2**26)
    ]
    assert sizes[0] < sizes[1]


def test_a_writer_of_few_frames_is_asked_for_more():
    cuts = {"writer_cuts": ("frame",), "reader_cuts": ("height", "width"), "itemsize": 4}
    least = least_chunk(MOVIE, **cuts)
    stored = choose_between(
        {**MOVIE, **least}, lengths=MOVIE, reader_cuts=("height", "width"), itemsize=4
    )
    held = MOVIE["frame"] * stored["height"] * stored["width"] * 4
    assert held <= 4 * READER_BYTES
    assert least_chunk({"frame": 10, "height": 20, "width": 30}, **cuts) == {}


@pytest.mark.parametrize("frames", [1, 7, 282, 283])
def test_the_end_of_the_data_may_cut_the_last_stored_chunk(frames):
    stored = choose_stored_chunks({**MOVIE, "frame": frames}, lengths=MOVIE, grain={}, itemsize=4)
    assert divides(stored, {**MOVIE, "frame": frames}, MOVIE)
    assert len(Grid(MOVIE, stored)) >= MOVIE["frame"] // frames


def test_a_result_whose_reader_is_unknown_is_cut_where_it_spans_most():
    lengths = {"frame": 500, "height": 360, "width": 368}
    stored = choose_stored_chunks(
        {"frame": 500, "height": 8, "width": 256}, lengths=lengths, grain={}, itemsize=8
    )
    assert stored == {"frame": 250, "height": 8, "width": 256}


def test_a_large_result_has_thousands_of_files_and_not_millions():
    lengths = {"y": 2**18, "x": 2**18}
    stored = choose_stored_chunks({"y": 2**13, "x": 2**13}, lengths=lengths, grain={}, itemsize=8)
    assert prod(stored.values()) * 8 == LARGEST_BYTES
