from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barrow.errors import BudgetError
from barrow.planning.ladder import balance, climb
from barrow.planning.stored import choose_stored_chunks

dims = st.lists(
    st.tuples(st.integers(1, 200), st.integers(1, 50), st.booleans()), min_size=1, max_size=4
)


def count_items(chunk):
    return prod(chunk.values())


def ladder(case, **options):
    lengths = {f"d{axis}": length for axis, (length, _, _) in enumerate(case)}
    grain = {f"d{axis}": min(grain, length) for axis, (length, grain, _) in enumerate(case)}
    cuttable = [f"d{axis}" for axis, (_, _, may) in enumerate(case) if may]
    rungs = climb(lengths, grain=grain, cuttable=cuttable, count_items=count_items, **options)
    return lengths, grain, cuttable, rungs


@given(dims, st.integers(1, 10**6))
def test_a_chunk_never_exceeds_the_budget(case, most):
    try:
        _, _, _, rungs = ladder(case, most_items=most)
    except BudgetError:
        assert prod(length for length, _, may in case if not may) > most
    else:
        assert rungs
        assert all(count_items(rung) <= most for rung in rungs)


@given(dims)
def test_what_must_be_whole_is_whole_and_the_rest_are_whole_grains(case):
    lengths, grain, cuttable, rungs = ladder(case, most_items=10**12)
    for rung in rungs:
        for dim, size in rung.items():
            if dim in cuttable:
                assert size == lengths[dim] or size % grain[dim] == 0
            else:
                assert size == lengths[dim]
    assert rungs[-1] == lengths


def test_chunks_grow_along_the_last_dimension_first():
    rungs = climb(
        {"y": 4, "x": 4}, grain={}, cuttable=("y", "x"), count_items=count_items, most_items=16
    )
    assert [tuple(rung.values()) for rung in rungs] == [(1, 1), (1, 2), (1, 4), (2, 4), (4, 4)]


def test_with_a_halo_chunks_grow_square():
    def with_halo(chunk):
        return (chunk["y"] + 16) * (chunk["x"] + 16)

    rungs = climb(
        {"y": 1024, "x": 1024},
        grain={},
        cuttable=("y", "x"),
        count_items=with_halo,
        most_items=10**7,
    )
    assert all(rung["x"] / rung["y"] <= 2 for rung in rungs)


def test_shapes_worth_a_million_candidates_are_decided_at_once():
    lengths = {"t": 100_000, "z": 500, "y": 20_000, "x": 20_000}
    rungs = climb(lengths, grain={}, cuttable=lengths, count_items=count_items, most_items=10**9)
    assert len(rungs) < 40


@given(st.integers(1, 400), st.integers(1, 64), st.integers(1, 9), st.integers(1, 4))
def test_balancing_keeps_whole_grains_and_never_leaves_fewer_chunks(length, size, grain, slots):
    grain = min(grain, length)
    chunk = min(length, max(1, size // grain) * grain)
    found = balance(
        {"x": chunk}, lengths={"x": length}, grain={"x": grain}, cuttable=("x",), slots=slots
    )["x"]
    assert found == length or found % grain == 0
    assert -(-length // found) >= -(-length // chunk)


def test_the_error_says_how_much_memory_is_enough():
    with pytest.raises(BudgetError, match=r"more than 7\.81 KiB"):
        climb(
            {"frame": 1000, "x": 5},
            grain={},
            cuttable=["x"],
            count_items=count_items,
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
