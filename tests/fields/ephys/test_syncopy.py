"""The same numbers as Syncopy: its answers were kept by benchmarks/peers/syncopy_numbers.py."""

import json
from pathlib import Path

import numpy as np
import pytest

from barrow import ephys

FOLDER = Path(__file__).parent / "data"
CASES = json.loads((FOLDER / "cases.json").read_text())
INPUTS = np.load(FOLDER / "input.npz")
THEIRS = np.load(FOLDER / "syncopy.npz")
RATE = 200.0

EXACT = ("but-bp", "but-lp", "but-hp-onepass", "but-bs-unequal")
"""Filters that agree bit for bit."""


def open_input(name):
    return ephys.AnalogData(INPUTS[name], RATE, INPUTS[f"{name}.trl"])


def compute(case):
    data = open_input(case["input"])
    for before in case.get("before", ()):
        data = getattr(ephys, before["call"])(data, **before["kwargs"])
    return getattr(ephys, case["call"])(data, **case["kwargs"])


def agrees(ours, theirs, phases=False):
    if phases:  # two angles may lie on either side of the cut
        ours, theirs = np.exp(1j * ours), np.exp(1j * theirs)
    # Values far below the largest are noise of single precision in both.
    return np.allclose(ours, theirs, rtol=1e-4, atol=2e-6 * np.abs(theirs).max())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_numbers_are_those_of_syncopy(case):
    name = case["name"]
    found = compute(case)
    if case["call"] == "timelockanalysis":
        for part in ("avg", "var", "cov"):
            assert np.allclose(getattr(found, part), THEIRS[f"{name}.{part}"], rtol=1e-4, atol=1e-6)
        return
    ours, theirs = np.asarray(found.data), THEIRS[name]
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    if name == "corr-even":
        # Syncopy gives the upper triangle at lags that are one too large for even lengths.
        assert agrees(ours[:, 0, 1, 0], theirs[:, 0, 1, 0])
        ours, theirs = ours[:, :, [0, 1], [0, 1]], theirs[:, :, [0, 1], [0, 1]]
    if name == "granger":
        # Without its mean a tapered trial has nothing at 0 Hz but rounding, of which the
        # factorisation takes the logarithm: near 0 Hz the answer depends on it.
        assert np.allclose(ours[:, 4:], theirs[:, 4:], rtol=0.01, atol=0.002)
        return
    if name in EXACT:
        assert np.array_equal(ours, theirs)
    assert agrees(ours, theirs, phases="angle" in name)
    if f"{name}.freq" in THEIRS and case["kwargs"].get("method") != "corr":
        assert np.allclose(found.freq, THEIRS[f"{name}.freq"])
    if case["call"] != "connectivityanalysis" and "welch" not in name:
        assert found.samplerate == pytest.approx(float(THEIRS[f"{name}.samplerate"]))
