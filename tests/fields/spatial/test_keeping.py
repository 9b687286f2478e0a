"""A segmentation with a place of its own is made once, whatever happens meanwhile."""

import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import ndimage

from barrow.errors import OutputError
from barrow.fields.spatial import map_raster, segment

# Sixteen tiles, of which four are written at a time; the run is killed when twelve are stored.
SIDE, CORNERS, STORED = 160, (0, 32, 72, 112), 3
SCRIPT = f"""
import sys
import time
from pathlib import Path

import numpy as np

from barrow.fields.spatial import segment

folder = Path(sys.argv[1])


def find(tile):
    with (folder / "calls").open("a") as file:
        print(int(tile[0, 0]), file=file)
    stored = len(list((folder / "cells.zarr").rglob("c/*/*")))
    if stored >= {STORED} and not (folder / "go").exists():
        (folder / "waiting").touch()
        time.sleep(100)  # to be killed meanwhile
    time.sleep(0.05)  # as a model that is worth it: what is done is noted at once
    y, x = np.divmod(tile, {SIDE})
    return ((y >= 10) & (y < 150) & (x >= 20) & (x < 30)).astype("u1")


image = np.arange({SIDE * SIDE}).reshape({SIDE}, {SIDE})  # a pixel says where it is
found = segment(
    image, find, overlap=8, chunks=40, to=folder / "cells.zarr", cluster=False, quiet=True
)
print(found.table["area"].tolist(), int(found.labels.sum()))
"""


@pytest.fixture
def image():
    found = np.zeros((90, 120), "u1")
    found[10:80, 15:25] = found[30:40, 60:110] = 200
    return found


class Counted:
    """A model that notes its calls."""

    def __init__(self, calls, level):
        self.calls, self.level = calls, level
        self.__name__ = "counted"

    def __call__(self, tile):
        with self.calls.open("a") as file:
            file.write("x")
        return ndimage.label(tile > self.level)[0].astype("i4")


def test_a_finished_segmentation_is_read_and_not_made_again(image, tmp_path):
    model = Counted(tmp_path / "calls", 100)
    options = {"overlap": 8, "chunks": 40, "to": tmp_path / "cells.zarr", "quiet": True}
    first = segment(image, model, **options)
    before = model.calls.stat().st_size
    again = segment(image, model, **options)
    assert model.calls.stat().st_size == before
    np.testing.assert_array_equal(again.labels.values, first.labels.values)
    assert again.table.equals(first.table)
    assert sorted(p.name for p in (tmp_path / "cells.zarr").iterdir()) == [
        ".table.npz",
        "0",
        "zarr.json",
    ]


def test_another_segmentation_is_not_put_in_its_place(image, tmp_path):
    to = tmp_path / "cells.zarr"
    segment(image, threshold=100, to=to, quiet=True)
    with pytest.raises(OutputError, match="holds another segmentation"):
        segment(image, threshold=120, to=to, quiet=True)


def test_labels_of_blocks_are_made_once_too(image, tmp_path):
    model = Counted(tmp_path / "calls", 100)
    to = tmp_path / "cells.zarr"
    image = image.astype("f4")  # whole numbers without channels would be labels already
    first = map_raster(image, model, chunks=40, dims=("y", "x"), to=to, quiet=True)
    assert map_raster(image, model, chunks=40, dims=("y", "x"), to=to, quiet=True).equals(first)
    other = Counted(tmp_path / "calls", 50)
    with pytest.raises(OutputError, match="holds another"):
        map_raster(image, other, chunks=40, dims=("y", "x"), to=to, quiet=True)


def test_after_a_kill_only_tiles_that_are_missing_are_labelled(tmp_path):
    script, calls = tmp_path / "script.py", tmp_path / "calls"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 100
    try:
        while not (tmp_path / "waiting").exists() and running.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        running.kill()
    assert running.wait() == -9, running.communicate()[0]
    calls.unlink()
    (tmp_path / "go").touch()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1400.0] 1400", done.stderr
    seen = set(map(int, calls.read_text().split()))
    tiles = {SIDE * y + x for y in CORNERS for x in CORNERS}
    # The model is tried out on some tiles again, but not on all.
    assert len(tiles - seen) >= 4
