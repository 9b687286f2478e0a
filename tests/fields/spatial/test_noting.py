"""Rows about objects are noted while their tile is at hand: just what is measured afterwards."""

import numpy as np
import pandas
import pytest

import barrow
from barrow.fields.spatial import Tissue, Watershed, regionprops, segment
from barrow.fields.spatial.models import Anchored, name_dtype
from barrow.fields.spatial.noting import Noted, Notes, Noting
from barrow.fields.spatial.tiles import Tiling

LENGTHS = {"y": 90, "x": 130}


@pytest.fixture(scope="module")
def image():
    source = Tissue(*LENGTHS.values(), density=0.5, seed=2).image()
    return source.read(source.everything)


def make_notes(folder):
    return Notes(folder, Tiling.cut(LENGTHS, {"y": 60, "x": 80}, {"y": 15, "x": 15}))


def note_all(image, notes, axis=0):
    """Let a model see all views, and return what was noted."""
    named = Anchored(Watershed(390, 12), LENGTHS, name_dtype(LENGTHS), {})
    model = Noting(named, axis, channel=0, notes=notes)
    axes = notes.tiling.axes
    for numbers in np.ndindex(*(axis.count for axis in axes.values())):
        spans = [slice(*axis.span(n)) for axis, n in zip(axes.values(), numbers, strict=True)]
        places = [np.arange(span.start, span.stop) for span in spans]
        tile = np.moveaxis(image[(slice(None), *spans)], 0, axis)
        model(tile, *places)
    return notes.read()


@pytest.mark.parametrize("axis", [0, 2])
def test_the_rows_of_all_tiles_are_those_of_the_whole_image(image, tmp_path, axis):
    noted = note_all(image, make_notes(tmp_path), axis).parts.table()
    labels = Watershed(390, 12)(image[0])
    expected = regionprops(labels, image, quiet=True)
    assert noted["area"].sum() == expected["area"].sum()
    assert noted["sum-c1"].sum() == pytest.approx((expected["area"] * expected.iloc[:, -1]).sum())


def test_what_is_no_whole_view_is_not_noted(image, tmp_path):
    notes = make_notes(tmp_path)
    assert notes.find([np.arange(0, 60), np.arange(0, 80)]) == (0, 0)
    assert notes.find([np.arange(0, 60), np.arange(1, 81)]) is None
    assert notes.find([np.arange(0, 30), np.arange(0, 80)]) is None
    assert notes.find([np.arange(0), np.arange(0, 80)]) is None
    assert notes.read() is None


def test_a_tile_whose_rows_are_lost_has_them_measured_anew(image, tmp_path, monkeypatch):
    whole = segment(image, channel=0, diameter=12, memory="1GB", chunks=60, quiet=True)
    monkeypatch.setattr(Notes, "read", lambda _: None)
    again = segment(image, channel=0, diameter=12, memory="1GB", chunks=60, quiet=True)
    pandas.testing.assert_frame_equal(whole.table, again.table)


def test_damaged_rows_are_no_rows(image, tmp_path):
    notes = make_notes(tmp_path)
    assert note_all(image, notes) is not None
    path = tmp_path / "1-0.npz"
    path.write_bytes(path.read_bytes()[:100])
    assert notes.read() is None
    path.write_bytes(b"")
    assert notes.read() is None


def test_a_table_does_not_depend_on_how_it_was_measured(image, tmp_path):
    held = segment(image, channel=0, diameter=12, quiet=True)
    noted = segment(image, channel=0, diameter=12, to=tmp_path / "labels", chunks=60, quiet=True)
    pandas.testing.assert_frame_equal(held.table, noted.table)
    assert not list((tmp_path / "labels").glob(".tiles/**/*"))


def test_channels_that_lie_last_are_measured_as_well(image):
    last = barrow.open(np.moveaxis(image, 0, -1).copy(), dims=("y", "x", "c"))
    found = segment(last, channel=0, diameter=12, quiet=True)
    pandas.testing.assert_frame_equal(
        found.table, segment(image, channel=0, diameter=12, quiet=True).table, check_names=False
    )


def test_rows_of_no_object_are_rows_all_the_same(tmp_path):
    notes = make_notes(tmp_path)
    noted = note_all(np.zeros((2, *LENGTHS.values()), "u2"), notes)
    assert isinstance(noted, Noted)
    assert len(noted.parts.table()) == 0
