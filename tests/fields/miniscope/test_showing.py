"""Results can be looked at, tried with other parameters, and taken elsewhere."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from barrow import miniscope
from barrow.errors import InputError


def test_the_summary_is_one_page_that_needs_no_network(found):
    page = miniscope.write_summary(found).read_text()
    assert page.count("data:image/png;base64,") == 3
    assert "6 cells in 400 frames of 96 × 80 pixels" in page
    assert "http:" not in page
    assert "https:" not in page
    assert "sparse_penal = 0.01" in page


def test_a_film_shows_raw_processed_and_explained_frames_side_by_side(found, simulated, tmp_path):
    place = miniscope.film(found, simulated[0], tmp_path / "film.mp4", frames=(200, 300))
    film = miniscope.load_videos(place)
    assert film.shape == (100, 96, 3 * 80)
    frames = film.read(film.everything).astype(float)
    clean, explained = frames[:, :, 80:160], frames[:, :, 160:]
    assert np.corrcoef(clean.max(axis=0).ravel(), explained.max(axis=0).ravel())[0, 1] > 0.7


def test_a_film_of_another_movie_is_refused(found, tmp_path):
    with pytest.raises(InputError, match="Give the videos that it was made from"):
        miniscope.film(found, np.zeros((400, 20, 20), "u1"), tmp_path / "film.mp4")


def test_an_nwb_file_holds_cells_and_traces(found, tmp_path):
    import pynwb

    miniscope.to_nwb(found, tmp_path / "cells.nwb", fps=30, indicator="GCaMP6f")
    assert not pynwb.validate(path=tmp_path / "cells.nwb")
    with pynwb.NWBHDF5IO(tmp_path / "cells.nwb", "r") as io:
        ophys = io.read().processing["ophys"]
        cells = ophys["ImageSegmentation"]["PlaneSegmentation"]
        assert cells.imaging_plane.indicator == "GCaMP6f"
        image = np.zeros((96, 80), "f4")
        for x, y, weight in cells["pixel_mask"][2]:
            image[int(y), int(x)] = weight
        np.testing.assert_allclose(image, found.A[2])
        series = ophys["Denoised"]["C"]
        assert series.rate == 30
        np.testing.assert_allclose(series.data[:], np.asarray(found.C).T)
        assert ophys["Motion"].data.shape == (400, 2)


def test_a_result_without_cells_is_an_nwb_file_too(tmp_path):
    empty = SimpleNamespace(
        units=0,
        A=np.zeros((0, 8, 8)),
        max_proj=np.zeros((8, 8)),
        b=np.zeros((8, 8)),
        motion=np.zeros((5, 2)),
    )
    miniscope.to_nwb(empty, tmp_path / "none.nwb")


def test_every_value_is_tried_and_drawn_with_the_others_as_they_were(simulated, tmp_path):
    vary = {
        "seeds_init": {"diff_thres": (3, 200)},
        "second_temporal": {"sparse_penal": (0.1, 3)},
    }
    tried = miniscope.explore(simulated[0], to=tmp_path, vary=vary, frames=200, cluster=False)
    rows = {(row["parameter"], row["value"]): row for row in tried.table}
    assert rows["diff_thres", 200]["seeds"] == 0
    assert rows["diff_thres", 3]["cells"] > 0
    active = [rows["sparse_penal", value]["active_share"] for value in (0.1, 3)]
    assert active[0] > active[1] > 0
    assert [place.name for place in tried.pictures] == [
        "second_temporal-sparse_penal.png",
        "seeds_init-diff_thres.png",
    ]
    assert len(json.loads((tmp_path / "table.json").read_text())) == 4


def test_a_step_that_does_not_exist_cannot_be_varied(tmp_path):
    with pytest.raises(InputError, match="'seeds', which is no step"):
        miniscope.explore(np.zeros((9, 9, 9), "u1"), to=tmp_path, vary={"seeds": {"a": (1,)}})
