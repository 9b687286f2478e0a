from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barrow.errors import BudgetError
from barrow.planning.chunks import choose_chunks, count_chunks
from barrow.planning.stored import choose_stored_chunks

dims = st.lists(
    st.tuples(st.integers(1, 200), st.integers(1, 50), st.booleans()), min_size=1, max_size=4
)


def count_items(chunk):
    return prod(chunk.values())


def choose(case, **options):
    lengths = {f"d{axis}": length for axis, (length, _, _) in enumerate(case)}
    grain = {f"d{axis}": min(grain, length) for axis, (length, grain, _) in enumerate(case)}
    cuttable = [f"d{axis}" for axis, (_, _, may) in enumerate(case) if may]
    chunk = choose_chunks(
        lengths, grain=grain, cuttable=cuttable, count_items=count_items, **options
    )
    return lengths, grain, cuttable, chunk


@given(dims, st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_chunk_never_exceeds_the_budget(case, wanted, most):
    try:
        _, _, _, chunk = choose(case, wanted_items=wanted, most_items=most)
    except BudgetError:
        least = prod(length for length, _, may in case if not may)
        assert least > most
    else:
        assert count_items(chunk) <= most


@given(dims, st.integers(1, 10**6))
def test_what_must_be_whole_is_whole_and_the_rest_are_whole_grains(case, wanted):
    lengths, grain, cuttable, chunk = choose(case, wanted_items=wanted, most_items=10**12)
    for dim, size in chunk.items():
        if dim in cuttable:
            assert size == lengths[dim] or size % grain[dim] == 0
        else:
            assert size == lengths[dim]


@given(dims, st.integers(1, 40))
def test_there_are_enough_chunks_for_the_workers_if_the_grain_allows(case, fewest):
    lengths, grain, cuttable, chunk = choose(
        case, wanted_items=10**9, most_items=10**12, fewest_chunks=fewest
    )
    finest = count_chunks(lengths, {d: grain[d] if d in cuttable else lengths[d] for d in lengths})
    assert count_chunks(lengths, chunk) >= min(fewest, finest)


def test_the_error_says_how_much_memory_is_enough():
    with pytest.raises(BudgetError, match=r"more than 7\.81 KiB"):
        choose_chunks(
            {"frame": 1000, "x": 5},
            grain={},
            cuttable=["x"],
            count_items=count_items,
            wanted_items=10,
            most_items=125,
            bytes_per_item=8,
        )


@given(
    st.lists(
        st.tuples(st.integers(1, 300), st.integers(1, 300), st.integers(1, 40)),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([1, 8, 10**4]),
)
def test_no_two_tasks_share_a_stored_chunk(case, itemsize):
    lengths = {f"d{axis}": length for axis, (length, _, _) in enumerate(case)}
    chunk = {f"d{axis}": min(length, size) for axis, (length, size, _) in enumerate(case)}
    grain = {f"d{axis}": grain for axis, (_, _, grain) in enumerate(case)}
    stored = choose_stored_chunks(chunk, lengths=lengths, grain=grain, itemsize=itemsize)
    for dim in lengths:
        assert chunk[dim] % stored[dim] == 0 or chunk[dim] == lengths[dim]
        assert 1 <= stored[dim] <= chunk[dim]
