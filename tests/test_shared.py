import gc
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barrow.shared import SharedArray


@given(
    st.lists(st.integers(1, 6), max_size=4).flatmap(
        lambda shape: st.tuples(
            st.just(tuple(shape)),
            st.tuples(
                *(st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted) for n in shape)
            ),
        )
    ),
    st.sampled_from(["u1", "i2", "f4", "f8", "c16", "?", "M8[s]", "S3"]),
)
def test_a_block_is_written_where_numpy_would_write_it(case, dtype):
    shape, ranges = case
    expected = np.zeros(shape, dtype)
    handle, array = SharedArray.create(shape, np.dtype(dtype))
    block = np.ones([stop - start for start, stop in ranges]).astype(dtype)
    where = tuple(slice(start, stop) for start, stop in ranges)
    expected[where] = block
    handle.write(tuple(map(tuple, ranges)), block)
    np.testing.assert_array_equal(array, expected)
    np.testing.assert_array_equal(handle.read(tuple(map(tuple, ranges))), block)


def test_another_process_writes_into_the_same_memory():
    handle, array = SharedArray.create((3, 1000), np.dtype("f8"))
    code = (
        "import pickle, sys, numpy; handle = pickle.loads(sys.stdin.buffer.read());"
        "handle.write(((1, 2), (0, 1000)), numpy.full((1, 1000), 7.0))"
    )
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(handle), check=True)
    assert array[1].tolist() == [7.0] * 1000
    assert not array[0].any()


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs Linux")
def test_the_memory_lives_as_long_as_any_view_and_then_goes():
    handle, array = SharedArray.create((10,), np.dtype("f8"))
    view = array[2:5]
    del array
    gc.collect()
    view[...] = 3
    assert handle.read(((2, 5),)).tolist() == [3, 3, 3]
    del view
    gc.collect()
    with pytest.raises(FileNotFoundError):
        handle.read(((2, 5),))


def test_a_late_writer_never_meets_another_file(tmp_path):
    # The number of a closed file is soon given to another one.
    handle, _ = SharedArray.create((1000,), np.dtype("f8"))
    (tmp_path / "precious").write_bytes(b"x" * 8000)
    late = replace(handle, path=str(tmp_path / "precious"))
    with pytest.raises(FileNotFoundError, match="is gone"):
        late.write(((0, 1000),), np.zeros(1000))
    with pytest.raises(FileNotFoundError, match="is gone"):
        late.read(((0, 10),))
    assert (tmp_path / "precious").read_bytes() == b"x" * 8000


def test_objects_cannot_be_shared():
    with pytest.raises(TypeError, match="Python objects"):
        SharedArray.create((2,), np.dtype(object))


def test_what_is_shared_already_is_not_copied():
    handle, array = SharedArray.create((3, 4), np.dtype("f8"))
    assert SharedArray.share(array)[0] == handle
    other, copy = SharedArray.share(array[1:])
    assert other != handle
    np.testing.assert_array_equal(copy, array[1:])
