"""Dask arrays."""

import pickle
import time
import warnings
import weakref

import dask
import dask.array as da
import numpy as np
import pytest

from barrow.errors import InputError
from barrow.sources.opening import open_source


@pytest.fixture(autouse=True)
def no_scheduler(monkeypatch):
    """Fail if anything asks for the scheduler of the day, such as a live cluster."""

    def refuse(*_, **__):
        raise AssertionError("a scheduler was asked for")

    monkeypatch.setattr(dask.base, "get_scheduler", refuse)


@pytest.mark.parametrize(
    "chunks", [(3, 4, 7), ((2, 3, 1), (6,), (5, 2)), (-1, -1, -1), ((1, 5), (0, 6), 3)]
)
def test_blocks_are_slices_of_the_array(make_array, check_blocks, chunks):
    array = make_array((6, 6, 7))
    check_blocks(open_source(da.from_array(array, chunks=chunks) + 1), array + np.uint16(1))


def test_every_dtype_is_read_as_it_is(make_array, check_blocks, dtype):
    array = make_array((4, 9), dtype)
    check_blocks(open_source(da.from_array(array, chunks=(2, 5))), array)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_small_and_empty_arrays_are_read(make_array, check_blocks, shape):
    array = make_array(shape)
    check_blocks(open_source(da.from_array(array)), array)
    check_blocks(open_source(da.from_array(array).sum()), array.sum())


def test_the_grain_comes_from_the_blocks():
    source = open_source(da.zeros((10, 10, 12), chunks=(4, 10, (4, 2, 4, 2))), dims=("t", "y", "x"))
    assert source.grain == {"t": 4, "y": 10, "x": 2}
    assert source.name == "array"


def test_only_the_blocks_of_the_range_are_computed():
    seen = []

    def note(block, block_info=None):
        seen.append(tuple(block_info[0]["chunk-location"]))
        return block

    array = da.zeros((40, 40), chunks=10).map_blocks(note, dtype=float, meta=np.empty((0, 0)))
    open_source(array).read(((5, 15), (20, 30)))
    assert sorted(seen) == [(0, 2), (1, 2)]


def test_part_of_a_part_computes_no_more_than_it_needs():
    seen = []
    array = da.arange(100, chunks=10).map_blocks(lambda b: seen.append(int(b[0])) or b, dtype=int)
    part = open_source(array).read.only(((0, 50),))
    seen.clear()
    assert part(((22, 28),)).tolist() == list(range(22, 28))
    assert seen == [20]


def test_a_small_part_of_a_large_graph_is_found_fast_and_travels_light():
    reader = open_source(da.ones(20_000, chunks=1) + da.ones(20_000, chunks=1)).read
    reader.only(((0, 1),))
    started = time.perf_counter()
    parts = [reader.only(((n, n + 1),)) for n in range(100)]
    assert (time.perf_counter() - started) / 100 < 1e-3
    assert len(parts[0].graph) <= 3
    assert len(pickle.dumps(parts[0])) < 10_000


def test_a_part_is_read_in_another_process(make_array, read_elsewhere):
    array = make_array((40, 50), ">f4")
    reader = open_source(da.from_array(array, chunks=(10, 25)) * 2).read
    ranges = ((5, 25), (20, 30))
    assert np.array_equal(read_elsewhere(reader.only(ranges), ranges), array[5:25, 20:30] * 2)
    assert np.array_equal(read_elsewhere(reader, ranges), array[5:25, 20:30] * 2)


def test_a_fresh_block_can_be_written_and_a_kept_one_cannot():
    kept = np.arange(20.0)
    held = da.Array({("held", 0): kept}, "held", ((20,),), dtype=float)
    assert np.shares_memory(block := open_source(held).read(((0, 20),)), kept)
    assert not block.flags.writeable
    view = held.map_blocks(lambda b: b[::-1])
    assert not open_source(view).read(((0, 20),)).flags.writeable
    assert kept.flags.writeable
    for fresh in (held + 1, (held + 1).map_blocks(lambda b: b[::-1])):
        assert open_source(fresh).read(((0, 20),)).flags.writeable
    assert open_source(held).read(((0, 19),)).flags.writeable


def test_several_blocks_are_let_go_of_one_by_one():
    blocks, alive = [], []

    def make(block):
        block = np.ones(block.shape)
        blocks.append(weakref.ref(block))
        alive.append(sum(ref() is not None for ref in blocks))
        return block

    array = da.zeros(100, chunks=10).map_blocks(make, dtype=float, meta=np.empty(0))
    assert open_source(array).read(((0, 100),)).sum() == 100
    assert len(alive) >= 10
    assert max(alive) <= 3


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x - x.mean(),
        lambda x: (x - x.min(axis=0)) / x.std(),
        lambda x: x / x.max(axis=1, keepdims=True) + x.sum(),
    ],
)
def test_what_all_blocks_share_is_computed_once(compute, check_blocks):
    loads = []

    def load(block):
        loads.append(1)
        return np.random.default_rng(0).random(block.shape)

    x = da.zeros((60, 60), chunks=10).map_blocks(load, dtype=float, meta=np.empty((0, 0)))
    expected = dask.threaded.get(dict((y := compute(x)).dask), y.__dask_keys__())
    loads.clear()
    source = open_source(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part = source.read.only(((0, 10), (0, 10)))
    assert len(part.graph) <= 6
    assert len(loads) == 36
    check_blocks(source, np.block([list(row) for row in expected]), count=3)


def test_what_cannot_be_shared_is_announced_with_numbers():
    array = da.random.default_rng(0).random((400, 400), chunks=(400, 4)).rechunk((4, 400))
    reader = open_source(array).read
    with pytest.warns(
        UserWarning, match=r"Each of the 100 blocks .* needs about \d+ of its .*zarr"
    ):
        reader.only(((0, 4), (0, 400)))


def test_neighbours_are_no_reason_for_a_warning():
    x = da.from_array(np.arange(3600.0).reshape(60, 60), chunks=10)
    array = da.overlap.overlap(x, depth=2, boundary="none").map_blocks(lambda b: b + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_source(array).read(((0, 10), (0, 10)))


def test_the_graph_is_read_even_if_optimising_is_switched_off(check_blocks):
    with dask.config.set({"optimization.fuse.active": False}):
        check_blocks(open_source(da.arange(30, chunks=7) + 1), np.arange(30) + 1)


def test_unknown_lengths_are_refused():
    x = da.arange(10, chunks=5)
    with pytest.raises(InputError, match=r"compute_chunk_sizes\(\)"):
        open_source(x[x > 3])


def test_other_kinds_of_blocks_are_refused():
    masked = da.ma.masked_less(da.arange(10, chunks=5), 3)
    with pytest.raises(InputError, match="MaskedArray, not NumPy arrays"):
        open_source(masked)
    with pytest.raises(InputError, match=r"Delayed.* is not an array"):
        open_source(dask.delayed(1))


def test_blocks_on_a_cluster_are_refused():
    Future = type("Future", (), {"__module__": "distributed.client", "key": "x"})  # noqa: N806
    array = da.Array({("x", 0): Future()}, "x", ((3,),), dtype=float)
    with pytest.raises(InputError, match=r"before persist\(\)"):
        open_source(array)


def test_a_block_that_is_not_what_its_chunks_say_is_named():
    array = da.zeros((20, 4), chunks=(10, 4)).map_blocks(lambda b: b[:, :1], dtype=float)
    source = open_source(array)
    for ranges in (((10, 20), (0, 4)), ((5, 15), (0, 4))):
        with pytest.raises(InputError, match=r"has shape \(10, 1\), but its chunks say \(10, 4\)"):
            source.read(ranges)


def test_the_identity_is_the_name_of_the_array():
    x = da.arange(10, chunks=5)
    assert open_source(x + 1).read.identity() == open_source(x + 1).read.identity()
    assert open_source(x + 1).read.identity() != open_source(x + 2).read.identity()
