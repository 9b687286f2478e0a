"""What is stored is compared with what was written."""

import numpy as np
import pytest
import zarr

from barrow.model.grid import Grid
from barrow.running.ledger import checksum, find_damaged
from barrow.running.sinks import ZarrSink


@pytest.mark.parametrize(
    "dtype", ["?", "u1", "<i2", ">i4", "f4", "f8", "c16", "M8[ns]", "U5", "S3"]
)
def test_every_dtype_has_a_checksum_of_its_values(dtype):
    block = np.arange(24).astype(dtype).reshape(4, 6)
    other = block.copy()
    other[2, 3] = block[0, 0] if block[2, 3] != block[0, 0] else block[0, 1]
    assert checksum(block) == checksum(block.copy())
    assert dtype == "?" or checksum(block) != checksum(other)


def test_the_order_in_memory_does_not_matter():
    block = np.arange(24.0).reshape(4, 6)
    assert checksum(np.asfortranarray(block)) == checksum(block)
    assert checksum(block[::-1][::-1]) == checksum(block)


def test_odd_shapes_have_checksums():
    assert checksum(np.float64(3.5) * np.ones(())) is not None
    assert checksum(np.empty((0, 4))) is not None


def test_objects_have_none():
    assert checksum(np.array([{}, []], dtype=object)) is None


def stored(tmp_path, data, chunk):
    path = tmp_path / "x.zarr"
    array = zarr.create_array(path, shape=data.shape, chunks=(chunk,), dtype=data.dtype)
    array[:] = data
    grid = Grid({"x": len(data)}, {"x": chunk})
    sums = {n: checksum(data[slice(*grid.ranges(n)[0])]) for n in range(len(grid))}
    return ZarrSink(str(path)), grid, sums, path


def test_what_was_not_touched_is_whole(tmp_path):
    sink, grid, sums, _ = stored(tmp_path, np.arange(100.0), 7)
    assert find_damaged(sink, grid, sums, threads=2) == set()


def test_chunks_that_were_altered_torn_or_deleted_are_found(tmp_path):
    sink, grid, sums, path = stored(tmp_path, np.arange(1.0, 101.0), 10)
    zarr.open_array(path)[15] = -1
    torn = path / "c" / "3"
    torn.write_bytes(torn.read_bytes()[:-5])
    (path / "c" / "5").unlink()
    (path / "c" / "8").write_bytes(b"")
    assert find_damaged(sink, grid, sums, threads=2) == {1, 3, 5, 8}


def test_a_row_that_no_task_can_have_written_is_not_believed(tmp_path):
    sink, grid, checksums, _ = stored(tmp_path, np.arange(100.0), 10)
    damaged = {4: None, len(grid): checksums[0], -1: checksums[9]}
    assert find_damaged(sink, grid, {**checksums, **damaged}, threads=1) == damaged.keys()
