"""HDF5 datasets."""

import io
import os
import threading

import h5py
import numpy as np
import pytest

from barrow.errors import InputError
from barrow.sources.opening import open_source


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


@pytest.mark.parametrize("chunks", [None, (4, 5)])
def test_blocks_are_slices_of_the_dataset(path, make_array, check_blocks, chunks):
    array = make_array((20, 30))
    with h5py.File(path, "w") as file:
        file.create_dataset("day/rates", data=array, chunks=chunks)
    source = open_source(path)
    assert source.name == "rates"
    assert source.grain == dict(zip(source.dims, chunks or (1, 1), strict=True))
    check_blocks(source, array)


@pytest.mark.parametrize("code", ["u1", "?", ">i4", "<f2", ">c16", "S5", "V7", "f8,>i2"])
def test_every_dtype_is_read_as_it_is(path, make_array, check_blocks, code):
    array = make_array((4, 9), code)
    with h5py.File(path, "w") as file:
        file["a"] = array
        file["point"] = array[:1, 0].reshape(())
    check_blocks(open_source(path, name="a"), array, count=3)
    check_blocks(open_source(path, name="point"), array[:1, 0].reshape(()), count=1)


def test_several_datasets_ask_for_a_choice(path, make_array, check_blocks):
    array = make_array((5, 6))
    with h5py.File(path, "w") as file:
        file["raw"], file["deep/mask"] = array, array > 9
    with pytest.raises(InputError, match=r"run\.h5' holds 'deep/mask', 'raw'. Choose one"):
        open_source(path)
    with pytest.raises(InputError, match=r"'rw' is not in .* 'deep/mask', 'raw'"):
        open_source(path, name="rw")
    for name in ("deep/mask", "/deep/mask", "deep"):
        check_blocks(open_source(path, name=name), array > 9, count=3)
    with h5py.File(path) as file:
        check_blocks(open_source(file, name="raw"), array, count=3)
        check_blocks(open_source(file["deep"]), array > 9, count=3)


def test_names_of_dimensions_are_found(path):
    with h5py.File(path, "w") as file:
        data = file.create_dataset("data", data=np.zeros((3, 4)))
        file["time"] = np.arange(3)
        file["time"].make_scale("time")
        data.dims[0].attach_scale(file["time"])
        data.dims[1].label = "channel"
    # The scale only labels an axis, so there is no choice to make.
    source = open_source(path)
    assert (source.name, source.dims, source.has_names) == ("data", ("time", "channel"), True)
    assert open_source(path, dims=("a", "b")).dims == ("a", "b")


def test_files_without_values_are_refused(path):
    with h5py.File(path, "w") as file:
        file.create_group("nothing")
    with pytest.raises(InputError, match="holds no dataset"):
        open_source(path)
    with h5py.File(path, "w") as file:
        file["empty"] = h5py.Empty("f4")
    with pytest.raises(InputError, match="no shape"):
        open_source(path)


def test_a_dataset_is_read_after_its_file_was_closed(path, make_array, check_blocks):
    array = make_array((5, 6))
    with h5py.File(path, "w") as file:
        source = open_source(file.create_dataset("a", data=array))
    check_blocks(source, array)
    with pytest.raises(InputError, match=r"was closed. Give the path"):
        open_source(file)


def test_a_file_open_for_writing_can_be_read(path, make_array, check_blocks, read_elsewhere):
    array = make_array((40, 50))
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("a", data=array, chunks=(10, 10))
        source = open_source(dataset)
        check_blocks(source, array, count=3)
        ranges = ((3, 25), (5, 36))
        assert np.array_equal(read_elsewhere(source.read, ranges), array[3:25, 5:36])
        dataset[0, 0] = 77
        assert source.read(((0, 1), (0, 1)))[0, 0] == 77


def test_a_file_that_was_read_can_be_written(path):
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(5)
    source = open_source(path)
    source.read(((0, 5),))
    with h5py.File(path, "r+") as file:
        file["a"][0] = 9
    assert source.read(((0, 1),))[0] == 9


def test_a_dataset_is_read_elsewhere(path, make_array, read_elsewhere):
    array = make_array((40, 50), ">f4")
    with h5py.File(path, "w") as file:
        file["a"] = array
    block = read_elsewhere(open_source(path).read, ((3, 25), (5, 36)))
    assert block.tobytes() == array[3:25, 5:36].tobytes()


def test_threads_can_read_together(path, make_array):
    array = make_array((64, 64))
    with h5py.File(path, "w") as file:
        file["a"] = array
    reader, wrong = open_source(path).read, []

    def read(row):
        if not np.array_equal(reader(((row, row + 8), (0, 64))), array[row : row + 8]):
            wrong.append(row)

    threads = [threading.Thread(target=read, args=(row,)) for row in range(0, 56, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_file_in_memory_is_read_here_and_shared(make_array, check_blocks, read_elsewhere):
    array = make_array((20, 30))
    with h5py.File(io.BytesIO(), "w") as file:
        source = open_source(file.create_dataset("a", data=array))
        check_blocks(source, array)
        shared = source.read.shared()
        assert np.array_equal(read_elsewhere(shared, ((0, 20), (3, 5))), array[:, 3:5])


def test_a_file_with_a_block_of_its_user_is_recognised(path):
    with h5py.File(path, "w", userblock_size=1024) as file:
        file["a"] = np.arange(3)
    assert open_source(path).shape == (3,)


def test_the_identity_follows_the_file_and_the_name(path):
    with h5py.File(path, "w") as file:
        file["a"], file["b"] = [1], [2]
    first = open_source(path, name="a").read.identity()
    assert first == open_source(path, name="a").read.identity()
    assert first != open_source(path, name="b").read.identity()
    os.utime(path, ns=(1, 1))
    assert first != open_source(path, name="a").read.identity()
