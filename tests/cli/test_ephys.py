"""``barrow ephys``."""

import numpy as np
import pytest
from click.testing import CliRunner

from barrow import ephys
from barrow.cli.main import main


@pytest.fixture
def recording(tmp_path):
    made = ephys.synthdata.white_noise(nTrials=4, nSamples=300, nChannels=2, seed=1, samplerate=300)
    made.save(tmp_path / "rec")
    return tmp_path / "rec.spy"


def run(*args):
    return CliRunner().invoke(main, ["ephys", *map(str, args)])


def test_spectra_of_a_container_go_to_a_store(recording, tmp_path):
    place = tmp_path / "power.zarr"
    done = run("spectra", recording, "--to", place, "--foilim", 10, 20, "--tapsmofrq", 3)
    assert done.exit_code == 0, done.output
    expected = ephys.freqanalysis(ephys.load(recording), foilim=[10, 20], tapsmofrq=3)
    assert np.allclose(np.asarray(ephys.load(place).data), expected.data, rtol=1e-5)
    assert f"Result in {place}" in done.output


def test_samples_of_an_array_are_cut_into_trials_and_filtered(tmp_path):
    np.save(tmp_path / "rec.npy", np.random.default_rng(0).normal(size=(1000, 2)).astype("f4"))
    place = tmp_path / "band.zarr"
    options = ("--samplerate", 250, "--trial-seconds", 1, "--freq", 20, "--freq", 40, "--quiet")
    done = run("filter", tmp_path / "rec.npy", "--to", place, *options)
    assert done.exit_code == 0, done.output
    assert len(ephys.load(place).trials) == 4


def test_a_file_without_a_rate_is_refused_with_advice(tmp_path):
    np.save(tmp_path / "rec.npy", np.zeros((10, 2)))
    done = run("spectra", tmp_path / "rec.npy", "--to", tmp_path / "out.zarr")
    assert done.exit_code == 1
    assert "AnalogData(path" in done.output
