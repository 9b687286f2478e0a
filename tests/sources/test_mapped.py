"""Memory maps and .npy files."""

import os
import pickle

import numpy as np
import pytest

from barrow.errors import InputError
from barrow.sources.mapped import MappedReader
from barrow.sources.memory import ArrayReader
from barrow.sources.opening import open_source


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(6, 7, 8), (5,), (), (0, 4)])
def test_blocks_of_a_file_are_slices_of_its_array(tmp_path, make_array, check_blocks, shape, order):
    array = np.asarray(make_array(shape), order=order)
    np.save(tmp_path / "movie.npy", array)
    source = open_source(tmp_path / "movie.npy")
    assert source.name == "movie"
    assert isinstance(source.read, MappedReader)
    check_blocks(source, array)


def test_every_dtype_is_read_as_it_is(tmp_path, make_array, check_blocks, dtype):
    array = make_array((4, 9), dtype)
    np.save(tmp_path / "a.npy", array)
    check_blocks(open_source(tmp_path / "a.npy"), array)


def test_python_objects_in_a_file_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, 1], object))
    with pytest.raises(InputError, match="number or text dtype"):
        open_source(tmp_path / "a.npy")


@pytest.mark.parametrize(
    "view", [np.s_[:], np.s_[3:], np.s_[::2, ::-1], np.s_[7, :, 2:4], np.s_[-1:0:-3, 4]]
)
def test_a_view_of_a_map_is_found_in_its_file(tmp_path, make_array, check_blocks, view):
    array = make_array((50, 60, 7), "<i4")
    (tmp_path / "raw").write_bytes(b"head" + array.tobytes())
    mapped = np.memmap(tmp_path / "raw", "<i4", "r", 4, (50, 60, 7))
    source = open_source(mapped[view])
    assert isinstance(source.read, MappedReader)
    check_blocks(source, array[view])
    check_blocks(open_source(mapped[view].T), array[view].T)


def test_a_map_with_a_large_offset_is_found_in_its_file(tmp_path, make_array, check_blocks):
    array = make_array((30_000,))
    array.tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", array.dtype, "r", offset=20_002)
    check_blocks(open_source(mapped[5:]), array[10_006:])


def test_a_map_is_never_copied(tmp_path, make_array):
    array = make_array((200, 200))
    array.tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", array.dtype, "r+", shape=array.shape)
    reader = open_source(mapped).read
    assert len(pickle.dumps(reader)) < 1000
    block = reader(((0, 2), (0, 2)))
    assert not block.flags.writeable
    mapped[0, 0] = 777
    assert block[0, 0] == 777


def test_a_map_with_changes_of_its_own_is_memory(tmp_path, make_array):
    array = make_array((20,))
    array.tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", array.dtype, "c")
    mapped[0] = 9
    source = open_source(mapped)
    assert isinstance(source.read, ArrayReader)
    assert source.read(((0, 1),))[0] == 9
    assert isinstance(open_source(mapped + 1).read, ArrayReader)


def test_a_file_is_read_in_another_process(tmp_path, make_array, read_elsewhere):
    array = make_array((40, 50), ">f4")
    np.save(tmp_path / "a.npy", array)
    reader = open_source(tmp_path / "a.npy").read
    assert np.array_equal(read_elsewhere(reader, ((3, 9), (5, 6))), array[3:9, 5:6])


def test_the_identity_follows_the_file_and_the_place(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(10))
    whole, part = np.load(path, mmap_mode="r"), np.load(path, mmap_mode="r")[2:]
    first = open_source(path).read.identity()
    assert first == open_source(whole).read.identity()
    assert first != open_source(part).read.identity()
    os.utime(path, ns=(1, 1))
    assert open_source(path).read.identity() != first
