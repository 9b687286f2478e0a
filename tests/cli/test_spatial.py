"""``barrow spatial``."""

import numpy as np
import pandas
import pytest
import tifffile
import zarr
from click.testing import CliRunner

from barrow.cli.main import main
from barrow.fields.spatial import Tissue


@pytest.fixture
def slide(tmp_path):
    source = Tissue(200, 240).image()
    path = tmp_path / "slide.tif"
    tifffile.imwrite(path, source.read(source.everything), tile=(64, 64), metadata={"axes": "CYX"})
    return path


def run(*args):
    done = CliRunner().invoke(main, ["spatial", *map(str, args)])
    assert done.exit_code == 0, done.output
    return done.output


def test_objects_go_to_a_store_and_a_table(slide, tmp_path):
    place, table = tmp_path / "labels.zarr", tmp_path / "objects.csv"
    said = run("segment", slide, "--to", place, "--table", table, "--workers", 0)
    rows = pandas.read_csv(table)
    assert f"{len(rows)} objects" in said
    labels = zarr.open_array(place / "0")[:]
    assert labels.max() == len(rows)
    np.testing.assert_array_equal(np.bincount(labels.ravel())[1:], rows["area"])


def test_a_function_of_ones_own_is_applied(slide, tmp_path):
    (tmp_path / "own.py").write_text("def invert(block):\n    return 65535 - block\n")
    place = tmp_path / "dark.zarr"
    run("map", f"{tmp_path / 'own.py'}:invert", slide, "--to", place, "--workers", 0, "--quiet")
    np.testing.assert_array_equal(zarr.open_array(place / "0")[:], 65535 - tifffile.imread(slide))


def test_scales_are_written(slide, tmp_path):
    run("pyramid", slide, "--to", tmp_path / "p.zarr", "--levels", 3, "--workers", 0)
    shapes = [zarr.open_array(tmp_path / "p.zarr" / str(n)).shape for n in range(3)]
    assert shapes == [(2, 200, 240), (2, 100, 120), (2, 50, 60)]
