"""Only the run that has the lease of a store writes into it."""

import numpy as np
import pytest
import zarr

from barrow.running.folders import open_result_folder
from barrow.running.sinks import WriteError, ZarrSink


@pytest.fixture
def folder(tmp_path):
    made = open_result_folder(tmp_path / "out.zarr")
    zarr.create_array(str(made.store / "array"), shape=(4,), chunks=(2,), dtype="i4")
    yield made
    made.release()


def sink_of(folder):
    return ZarrSink(str(folder.store / "array"), folder.begin_lease(), str(folder.lease_path))


def test_only_the_run_that_has_the_lease_may_write(folder):
    first = sink_of(folder)
    first.write(((0, 2),), np.array([1, 2], "i4"))
    second = sink_of(folder)
    with pytest.raises(WriteError, match="is over"):
        first.write(((0, 2),), np.array([8, 8], "i4"))
    second.write(((2, 4),), np.array([3, 4], "i4"))
    assert second.read(((0, 4),)).tolist() == [1, 2, 3, 4]


def test_when_a_run_has_let_go_nobody_may_write_and_nothing_appears_again(folder, tmp_path):
    late = sink_of(folder)
    folder.release()
    with pytest.raises(WriteError, match="is over"):
        late.write(((0, 2),), np.array([8, 8], "i4"))
    late = sink_of(folder)
    finished = folder.finish()
    with pytest.raises(WriteError, match="is over"):
        late.write(((0, 2),), np.array([8, 8], "i4"))
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]
    assert [path.name for path in finished.root.iterdir()] == ["lock"]
