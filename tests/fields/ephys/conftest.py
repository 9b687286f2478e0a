"""Recordings that the tests of this field share."""

import h5py
import numpy as np
import pytest

from barrow import ephys

RATE = 500.0


@pytest.fixture
def noise():
    """Five trials of 200 samples and three channels."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(5, 200, 3)).astype("f4")
    return ephys.AnalogData(values, RATE, channel=["a", "b", "c"], offsets=np.full(5, -50.0))


@pytest.fixture
def unequal():
    """Trials of 200, 150 and 171 samples, and two channels."""
    rng = np.random.default_rng(4)
    return ephys.AnalogData([rng.normal(size=(n, 2)).astype("f4") for n in (200, 150, 171)], RATE)


@pytest.fixture
def stacked_file(tmp_path):
    """A file with 2000 samples of four channels, once in a piece and once in chunks."""
    values = np.random.default_rng(5).normal(size=(2000, 4)).astype("f4")
    path = tmp_path / "rec.h5"
    with h5py.File(path, "w") as file:
        file["plain"] = values
        file.create_dataset("chunked", data=values, chunks=(300, 2), compression="gzip")
    return path, values
