"""From a movie to cells: as good as the truth allows, the same however it is cut."""

import numpy as np
import pytest
from scipy import sparse

from barrow import miniscope
from barrow.fields.miniscope import footprints


def values_of(result):
    return {name: np.asarray(getattr(result, name)) for name in ("A", "C", "S", "motion")}


def test_all_cells_of_a_simulated_movie_are_found_and_nothing_else(found, simulated):
    score = miniscope.score(values_of(found), simulated[1])
    assert score.recall == 1
    assert score.precision == 1
    assert score.iou > 0.7
    assert score.trace > 0.95
    assert score.activity > 0.6
    assert score.motion_rmse < 0.3


def test_the_results_are_labelled_arrays(found):
    data = found.to_dataset()
    assert data["A"].dims == ("unit_id", "height", "width")
    assert data["YrA"].shape == data["C"].shape == data["S"].shape == (6, 400)
    assert data["motion"].dims == ("frame", "shift_dim")
    assert (data["b"].shape, data["f"].shape) == ((96, 80), (400,))
    assert miniscope.load(found.folder).units == 6


@pytest.mark.parametrize("chunks", [128, 256])
def test_the_results_do_not_depend_on_the_chunks(found, simulated, tmp_path, chunks):
    other = miniscope.run(
        simulated[0], to=tmp_path, cluster=False, chunks={"frame": chunks}, quiet=True
    )
    one, two = values_of(found), values_of(other)
    np.testing.assert_allclose(two["motion"], one["motion"], atol=1e-3)
    for name in ("A", "C", "S"):
        np.testing.assert_allclose(two[name], one[name], rtol=1e-3, atol=1e-3)


def test_the_same_call_again_computes_nothing(found, simulated):
    again = miniscope.run(simulated[0], to=found.folder, cluster=False, quiet=True)
    assert again.redone == ()


def test_a_changed_parameter_redoes_what_depends_on_it_and_no_more(simulated, tmp_path):
    movie = simulated[0][:200]
    miniscope.run(movie, to=tmp_path, cluster=False, quiet=True)
    params = {"second_temporal": {"sparse_penal": 2}}
    again = miniscope.run(movie, to=tmp_path, params=params, cluster=False, quiet=True)
    assert again.redone == (
        "second_temporal",
        "units",
    )
    params["first_spatial"] = {"sparse_penal": 0.02}
    again = miniscope.run(movie, to=tmp_path, params=params, cluster=False, quiet=True)
    assert again.redone == (
        "first_spatial", "first_temporal", "second_spatial", "second_temporal", "units",
    )  # fmt: skip


def test_units_that_are_joined_again_and_again_keep_traces_of_their_own(
    simulated, tmp_path, monkeypatch
):
    def join_two(units, traces, **_):
        if units.shape[1] < 2:
            return units, traces
        first = sparse.csc_array((units[:, [0]] + units[:, [1]]) / 2)
        rest = np.vstack([traces[:1], traces[2:]])
        return sparse.csc_array(sparse.hstack([first, units[:, 2:]])), rest

    monkeypatch.setattr(footprints, "unit_merge", join_two)
    params = {"keep_active": {"least_skew": -np.inf}}
    found = miniscope.run(simulated[0][:200], to=tmp_path, params=params, cluster=False, quiet=True)
    assert len(found.A) == len(found.C) == len(found.S) >= 1


def test_a_movie_without_cells_has_none(tmp_path):
    movie, _ = miniscope.simulate(frames=150, height=64, width=64, cells=0)
    found = miniscope.run(movie, to=tmp_path, cluster=False, quiet=True)
    assert found.units == 0
    assert found.A.shape == (0, 64, 64)


@pytest.mark.parametrize(
    "movie",
    [
        np.random.default_rng(0).integers(0, 255, (3, 40, 30), "u1"),
        np.full((140, 40, 30), 255, "u1"),
        np.zeros((5, 40, 30), "u2"),
        np.random.default_rng(0).random((140, 33, 31)).astype("f4"),
    ],
    ids=["three frames", "saturated", "dark", "floats"],
)
def test_odd_movies_give_a_result(movie, tmp_path):
    found = miniscope.run(movie, to=tmp_path, cluster=False, quiet=True)
    assert found.C.sizes["frame"] == len(movie)
    assert np.isfinite(found.motion).all()
