"""A block that needs little of many storage chunks does not hold them all."""

import numpy as np
import zarr
from hypothesis import given
from hypothesis import strategies as st

from barrow.sources.parts import count_decoded, read_in_parts


class Counted:
    """An array that notes how many items of storage chunks each reading touches."""

    def __init__(self, array, chunks):
        self.array, self.chunks, self.dtype = array, chunks, array.dtype
        self.decoded = []

    def __getitem__(self, index):
        ranges = tuple((s.start, s.stop) for s in index[:-1])
        self.decoded.append(count_decoded(ranges, self.chunks))
        return self.array[index]


@st.composite
def requests(draw):
    shape = draw(st.lists(st.integers(1, 30), min_size=0, max_size=3))
    chunks = tuple(draw(st.integers(1, n)) for n in shape)
    ranges = []
    for n in shape:
        start = draw(st.integers(0, n - 1))
        ranges.append((start, draw(st.integers(start, n))))
    return tuple(shape), chunks, tuple(ranges), draw(st.sampled_from([1, 64, 10**6]))


@given(requests())
def test_parts_make_the_same_block(request_):
    shape, chunks, ranges, most = request_
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    found = read_in_parts(array, ranges, chunks, most)
    right = array[tuple(slice(*r) for r in ranges)]
    assert found.shape == right.shape
    assert np.array_equal(found, right)


def test_one_frame_of_pixels_stored_through_time_is_read_with_little_at_once():
    movie = Counted(np.zeros((64, 32, 32), "f4"), (64, 4, 4))
    read_in_parts(movie, ((5, 6), (0, 32), (0, 32)), movie.chunks, most_bytes=2**15)
    assert max(movie.decoded) * 4 <= 2**15 + 2 * 4 * 32 * 32
    assert sum(movie.decoded) == 64 * 32 * 32  # nothing is decoded twice


def test_a_block_of_whole_chunks_is_read_at_once():
    movie = Counted(np.zeros((64, 32, 32), "f4"), (16, 4, 4))
    read_in_parts(movie, ((0, 64), (0, 32), (0, 32)), movie.chunks, most_bytes=1)
    assert len(movie.decoded) == 1


def test_stored_arrays_are_read_so(tmp_path, monkeypatch):
    import barrow
    from barrow.sources import parts

    monkeypatch.setattr(parts.read_in_parts, "__defaults__", (256,))
    data = np.random.default_rng(0).random((20, 9, 7))
    zarr.create_array(tmp_path / "a.zarr", data=data, chunks=(20, 2, 3))
    source = barrow.open(tmp_path / "a.zarr")
    assert np.array_equal(source.read(((3, 5), (0, 9), (1, 7))), data[3:5, 0:9, 1:7])
