"""What the tests of all formats need: arrays, blocks, and another process."""

import pickle
import struct
import subprocess
import sys
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import barrow

READER_PROCESS = """
import pickle, struct, sys
while head := sys.stdin.buffer.read(8):
    reader, ranges = pickle.loads(sys.stdin.buffer.read(*struct.unpack("q", head)))
    answer = pickle.dumps(reader(ranges), protocol=5)
    sys.stdout.buffer.write(struct.pack("q", len(answer)) + answer)
    sys.stdout.buffer.flush()
"""

DTYPES = [
    np.dtype(text) for text in ("u1", "?", ">i4", "<f2", ">c16", "M8[ns]", "S5", "U3", "V7")
] + [np.dtype([("time", "<f8"), ("amplitude", ">i2")])]


@pytest.fixture(scope="session")
def read_elsewhere():
    """Read a block in a process that has seen nothing but the pickled reader."""
    source = str(Path(barrow.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r}){READER_PROCESS}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def read(reader, ranges):
        question = cloudpickle.dumps((reader, ranges))
        process.stdin.write(struct.pack("q", len(question)) + question)
        process.stdin.flush()
        head = process.stdout.read(8)
        assert head, "the other process could not read the block: see its error above"
        return pickle.loads(process.stdout.read(*struct.unpack("q", head)))

    yield read
    process.stdin.close()
    process.wait(timeout=30)
    process.stdout.close()


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request):
    return request.param


@pytest.fixture
def make_array():
    """Make an array of arbitrary bytes, or of plain numbers where bytes are not values."""

    def make(shape, dtype="u2", seed=0):
        dtype = np.dtype(dtype)
        random = np.random.default_rng(seed)
        numbers = random.integers(0, 250, shape)
        if dtype.kind in "V" and dtype.names is None:
            return np.frombuffer(random.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(
                shape
            )
        if dtype.names:
            array = np.zeros(shape, dtype)
            for field in dtype.names:
                array[field] = numbers
            return array
        if dtype.kind in "SU":
            return numbers.astype(dtype)
        return (numbers % 2 if dtype.kind == "b" else numbers).astype(dtype)

    return make


@pytest.fixture
def check_blocks():
    """Compare random blocks of a source with slices of the array it stands for."""

    def check(source, array, count=12, seed=0):
        random = np.random.default_rng(seed)
        assert source.shape == array.shape
        assert source.dtype == array.dtype
        for _ in range(count):
            ranges = tuple(
                tuple(sorted(map(int, random.integers(0, length + 1, 2)))) for length in array.shape
            )
            _check_block(source.read(ranges), array, ranges)
        _check_block(source.read(source.everything), array, source.everything)

    return check


def _check_block(block, array, ranges):
    expected = array[(*(slice(*pair) for pair in ranges), ...)]
    assert type(block) is np.ndarray
    assert block.dtype == expected.dtype
    assert block.shape == expected.shape
    assert block.tobytes() == expected.tobytes()
