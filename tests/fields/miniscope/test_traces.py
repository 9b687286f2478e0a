"""Traces of units whose footprints overlap."""

import numpy as np
import pytest

from barrow.fields.miniscope import compute_trace, filtering
from barrow.fields.miniscope.seeding import normalise


@pytest.fixture
def footprints(rng):
    return rng.random((5, 40)) * (rng.random((5, 40)) > 0.5)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_light_that_units_share_is_told_apart(footprints, rng):
    truth = rng.random((5, 300))
    overlap = footprints @ footprints.T
    found = compute_trace(overlap @ truth, overlap, ridge=0.0)
    assert np.allclose(found, truth)


def test_traces_are_the_same_however_few_frames_are_worked_on_at_once(footprints, rng, monkeypatch):
    overlap, light = footprints @ footprints.T, rng.random((5, 301))
    whole = compute_trace(light, overlap)
    monkeypatch.setattr(filtering, "AT_ONCE", 35)
    assert np.allclose(compute_trace(light, overlap), whole, rtol=1e-12, atol=0)


def test_a_unit_without_a_footprint_has_no_trace(footprints, rng):
    footprints[2] = 0
    found = compute_trace(footprints @ rng.random((40, 20)), footprints @ footprints.T)
    assert np.isfinite(found).all()
    assert (found[2] == 0).all()


def test_no_units_have_no_traces():
    assert compute_trace(np.zeros((0, 9)), np.zeros((0, 0))).shape == (0, 9)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
def test_normalised_traces_have_mean_0_and_length_1(rng, dtype, monkeypatch):
    monkeypatch.setattr(filtering, "AT_ONCE", 40)
    traces = (100 * rng.random((7, 30))).astype(dtype)
    traces[3] = 5
    found = normalise(traces)
    lengths = np.linalg.norm(found, axis=1)
    assert np.allclose(found.mean(axis=1), 0, atol=1e-6)
    assert np.allclose(lengths, np.arange(7) != 3, atol=1e-5)
