"""Made-up recordings."""

import numpy as np
import pytest

from barrow import ephys


def test_no_two_trials_are_alike_and_a_seed_repeats_them():
    first = ephys.synthdata.white_noise(nTrials=300, nSamples=200, nChannels=3, seed=5, quiet=True)
    again = ephys.synthdata.white_noise(nTrials=300, nSamples=200, nChannels=3, seed=5, quiet=True)
    cube = first.cube()
    assert np.array_equal(cube, again.cube())
    assert len(np.unique(cube[:, 0, 0])) == 300
    assert abs(float(cube.std()) - 1) < 0.01


def test_a_trial_does_not_depend_on_how_many_there_are():
    few = ephys.synthdata.white_noise(nTrials=2, nSamples=200, nChannels=3, seed=5)
    many = ephys.synthdata.white_noise(nTrials=300, nSamples=200, nChannels=3, seed=5, quiet=True)
    assert np.array_equal(few.trials[1], many.trials[1])


def test_large_recordings_go_straight_to_a_store(tmp_path):
    made = ephys.synthdata.red_noise(
        0.9, nTrials=100, nSamples=500, seed=1, to=tmp_path / "red.zarr", quiet=True
    )
    assert made.data.shape == (50_000, 2)
    power = ephys.freqanalysis(made, keeptrials=False, quiet=True).data[0, 0, :, 0]
    assert power[1:10].mean() > 20 * power[200:].mean()


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (lambda: ephys.synthdata.harmonic(40, 500, nTrials=3), (3, 1000, 2)),
        (lambda: ephys.synthdata.linear_trend(5, nTrials=2, nChannels=1), (2, 1000, 1)),
        (lambda: ephys.synthdata.phase_diffusion(40, nTrials=2, rand_ini=True), (2, 1000, 2)),
        (lambda: ephys.synthdata.ar2_network(nTrials=2, nSamples=300), (2, 300, 2)),
    ],
)
def test_each_kind_has_the_shape_that_was_asked_for(made, shape):
    assert made().cube().shape == shape


def test_a_network_with_default_couplings_peaks_at_a_fifth_of_the_rate():
    made = ephys.synthdata.ar2_network(nTrials=50, samplerate=200, seed=1)
    power = ephys.freqanalysis(made, keeptrials=False)
    assert abs(power.freq[power.data[0, 0, :, 1].argmax()] - 40) < 3


def test_without_trials_an_array_is_made():
    assert ephys.synthdata.white_noise(nTrials=None, nSamples=10).shape == (10, 2)


def test_spikes_fall_into_their_trials():
    spikes = ephys.synthdata.poisson_noise(nTrials=5, nSpikes=2000, seed=1)
    inside = sum(len(trial) for trial in spikes.trials)
    assert 1700 < inside <= 2000
    assert (spikes.trialintervals[:, 0] < 0).all()
