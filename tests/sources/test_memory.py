"""Arrays in memory."""

import pickle

import numpy as np
import pytest

from barrow.errors import InputError, TravelError
from barrow.sources.memory import HeldReader
from barrow.sources.opening import open_source


@pytest.mark.parametrize("view", [np.s_[:], np.s_[::2, ::-1], np.s_[..., 1], np.s_[1, 2, 3]])
def test_blocks_are_slices_of_the_array(make_array, check_blocks, view):
    array = make_array((5, 6, 7))[view]
    check_blocks(open_source(np.asarray(array)), np.asarray(array))


def test_every_dtype_is_read_as_it_is(make_array, check_blocks, dtype):
    array = make_array((4, 9), dtype)
    source = open_source(array)
    check_blocks(source, array)
    shared = source.read.shared()
    assert shared(source.everything).tobytes() == array.tobytes()


def test_a_block_is_a_view_that_cannot_be_written(make_array):
    array = make_array((4, 5))
    block = open_source(array).read(((1, 3), (0, 5)))
    assert np.shares_memory(block, array)
    assert not block.flags.writeable
    assert array.flags.writeable


def test_subclasses_give_plain_arrays():
    source = open_source(np.eye(3).view(np.recarray))
    assert type(source.read(source.everything)) is np.ndarray


def test_masked_arrays_are_refused():
    with pytest.raises(InputError, match=r"filled\(value\)"):
        open_source(np.ma.masked_less(np.arange(3), 1))


def test_a_shared_array_is_read_in_another_process(make_array, read_elsewhere):
    array = make_array((40, 50), ">f4")
    reader = open_source(array).read.shared()
    block = read_elsewhere(reader, ((3, 20), (10, 11)))
    assert block.tobytes() == array[3:20, 10:11].tobytes()
    assert block.flags.writeable


def test_a_shared_array_travels_without_its_values(make_array):
    reader = open_source(make_array((500, 500))).read.shared()
    assert len(pickle.dumps(reader)) < 500
    assert not reader(((0, 5), (0, 5))).flags.writeable


def test_a_shared_array_keeps_its_identity(make_array):
    reader = open_source(make_array((5, 5))).read
    assert reader.shared().identity() == reader.identity()
    assert pickle.loads(pickle.dumps(shared := reader.shared())).identity() == shared.identity()


def test_one_block_travels_alone(make_array, read_elsewhere):
    array = make_array((500, 500))
    reader = open_source(array).read
    part = reader.only(((100, 110), (50, 60)))
    assert reader.is_heavy
    assert len(pickle.dumps(part)) < 1000
    assert np.array_equal(read_elsewhere(part, ((102, 105), (50, 60))), array[102:105, 50:60])


def test_a_block_keeps_its_dtype_on_the_way(make_array, dtype):
    # Older pickle protocols turn big-endian arrays into little-endian ones.
    part = open_source(make_array((5, 6), dtype)).read.only(((1, 3), (0, 6)))
    for protocol in (4, 5):
        assert pickle.loads(pickle.dumps(part, protocol))(((1, 3), (0, 6))).dtype == dtype


def test_python_objects_are_read_but_not_shared():
    array = np.array([{"a": 1}, None], object)
    source = open_source(array)
    assert source.read.shared()(((0, 1),))[0] == {"a": 1}


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7, 5)])
def test_what_another_library_holds_is_shared_and_cut(make_array, shape, read_elsewhere):
    array = make_array(shape)
    reader = HeldReader(array, (2,) * len(shape))
    everything = tuple((0, length) for length in shape)
    assert np.array_equal(reader.shared()(everything), array)
    assert np.array_equal(read_elsewhere(reader.shared(), everything), array)
    assert np.array_equal(read_elsewhere(reader.only(everything), everything), array)
    assert reader.identity() == open_source(array).read.identity()


def test_what_another_library_holds_cannot_be_sent():
    with pytest.raises(TravelError, match="give its path"):
        pickle.dumps(HeldReader(np.zeros(3), (3,)))
