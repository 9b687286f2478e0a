"""Whole calls through barrow: cut over trials and channels, larger than memory, interrupted."""

import numpy as np
import pytest

from barrow import ephys
from barrow.errors import InputError
from barrow.fields.ephys import computing
from barrow.fields.ephys.connecting import cross_spectra
from barrow.fields.ephys.filters import Filter
from barrow.fields.ephys.fourier import mtmfft
from barrow.fields.ephys.preparing import preprocess
from barrow.fields.ephys.stored import LazyArray

RATE = 500.0


@pytest.fixture(autouse=True)
def nothing_is_tiny(monkeypatch):
    """Plan what would otherwise be over at once."""
    monkeypatch.setattr(computing, "AT_ONCE_SECONDS", 0)


@pytest.fixture(scope="module")
def large():
    """Two hundred trials, 1.2 MB."""
    values = np.random.default_rng(0).normal(size=(200, 250, 6)).astype("f4")
    return ephys.AnalogData(values, RATE)


def test_the_cut_does_not_change_the_numbers(large):
    expected = mtmfft(large.cube())
    assert np.allclose(ephys.freqanalysis(large, quiet=True)._array, expected, rtol=1e-5)
    assert np.allclose(ephys.freqanalysis(large, parallel=False)._array, expected, rtol=1e-5)


@pytest.mark.parametrize("count", [1, 4, 40])
def test_any_number_of_channels_can_be_worked_on_together(large, count):
    found = ephys.freqanalysis(large, chan_per_worker=count, foilim=[10, 20])
    assert np.allclose(found.data, ephys.freqanalysis(large, foilim=[10, 20]).data, rtol=1e-5)


def test_a_live_dask_client_is_used(large):
    from distributed import Client

    expected = ephys.freqanalysis(large, foilim=[10, 60], parallel=False)
    with Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    ):
        found = ephys.freqanalysis(large, foilim=[10, 60])
    assert np.allclose(found.data, expected.data, rtol=1e-5)


def test_unequal_trials_of_a_file_are_filtered_in_one_run(tmp_path):
    rng = np.random.default_rng(1)
    trials = [rng.normal(size=(n, 6)).astype("f4") for n in rng.integers(100, 300, size=60)]
    path = ephys.AnalogData(trials, RATE).save(tmp_path / "rec")
    rec = ephys.load(path)
    assert isinstance(rec._array, LazyArray)
    band = ephys.preprocessing(rec, filter_type="bp", freq=[20, 40], quiet=True)
    chosen = Filter("but", "bp", (20.0, 40.0), 4, "twopass", RATE)
    for number in (0, 17, 59):
        alone = preprocess(trials[number][None], chosen=chosen)[0]
        assert np.array_equal(band.trials[number], alone)


def test_unequal_trials_have_windows_as_long_as_they_last():
    rng = np.random.default_rng(1)
    trials = [rng.normal(size=(n, 4)).astype("f4") for n in rng.integers(150, 300, size=90)]
    rec = ephys.AnalogData(trials, RATE)
    found = ephys.freqanalysis(rec, method="mtmconvol", t_ftimwin=0.1, toi=0.5, foi=[20, 40])
    assert found.lengths.tolist() == [-(-len(trial) // 25) for trial in trials]
    alone = ephys.freqanalysis(
        rec.selectdata(trials=[33]), method="mtmconvol", t_ftimwin=0.1, toi=0.5, foi=[20, 40]
    )
    assert np.allclose(found.trials[33], alone.trials[0], rtol=1e-5)


def test_an_average_over_trials_is_added_up_in_parts(large):
    each = ephys.freqanalysis(large)
    mean = ephys.freqanalysis(large, keeptrials=False)
    assert mean.data.shape == (1, 1, 126, 6)
    assert np.allclose(mean.data[0], np.asarray(each.data).mean(axis=0), rtol=1e-4)


def test_a_result_in_a_store_says_what_it_means(large, tmp_path):
    place = tmp_path / "power.zarr"
    made = ephys.freqanalysis(large, foilim=[10, 60], to=place, quiet=True)
    again = ephys.freqanalysis(large, foilim=[10, 60], to=place, quiet=True)
    found = ephys.load(place)
    for other in (again, found):
        assert np.array_equal(np.asarray(other.data), np.asarray(made.data))
    assert found.freq[0] == 10
    assert found.cfg.freqanalysis["foilim"] == [10, 60]


def test_trials_with_nan_are_named_and_left_out_of_averages(large):
    values = large.cube().copy()
    values[[3, 8], 10, 2] = np.nan
    holed = ephys.AnalogData(values, RATE)
    with pytest.warns(UserWarning, match="2 of 200 trials have NaN: 3, 8"):
        each = ephys.freqanalysis(holed)
    assert each.info["nan_trials"] == [3, 8]
    assert np.isfinite(each.data[3, ..., :2]).all()
    mean = ephys.freqanalysis(holed, keeptrials=False)
    assert np.isfinite(mean.data).all()
    coherence = ephys.connectivityanalysis(holed, method="coh")
    assert np.isfinite(coherence.data).all()
    with pytest.warns(UserWarning, match="3, 8"):
        low = ephys.preprocessing(holed, filter_type="lp", freq=50)
    assert low.info["nan_trials"] == [3, 8]


def test_connectivity_in_parts_is_that_of_all_at_once(large):
    parts = ephys.connectivityanalysis(large, method="csd", parallel=False)
    assert np.allclose(parts.data, cross_spectra(large.cube()).mean(axis=0), atol=1e-7)


def test_pairs_of_channels_are_picked(noise):
    everything = ephys.connectivityanalysis(noise, method="coh")
    pairs = ephys.connectivityanalysis(noise, method="coh", channelcmb=[["a"], ["b", "c"]])
    assert pairs.channel_j.tolist() == ["b", "c"]
    assert np.array_equal(pairs.data[..., 0, :], everything.data[..., 0, 1:])


def test_causality_points_from_the_driver_to_the_driven():
    network = ephys.synthdata.ar2_network(nTrials=200, nSamples=200, seed=1, samplerate=200)
    found = ephys.connectivityanalysis(network, method="granger", tapsmofrq=4)
    at = np.abs(found.freq - 40).argmin()
    assert found.info["converged"]
    assert found.data[0, at, 1, 0] > 10 * found.data[0, at, 0, 1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "fft"}, "mtmfft, mtmconvol"),
        ({"output": "power"}, "pow, abs"),
        ({"foi": [1], "foilim": [1, 2]}, "not both"),
        ({"foilim": [1, 400]}, "half the sample rate"),
        ({"pad": 0.1}, "longest trial"),
        ({"method": "mtmconvol"}, "t_ftimwin=None"),
        ({"method": "mtmconvol", "t_ftimwin": 0.1, "toi": 3}, "overlap"),
        ({"method": "superlet"}, "order_max"),
        ({"method": "wavelet", "wavelet": "Haar"}, "Morlet"),
        ({"method": "wavelet", "toi": [0.0, 0.1, 0.3]}, "evenly"),
        ({"tapsmofrq": 4, "output": "fourier"}, "keeptapers=True"),
        ({"polyremoval": 3}, "0 for the mean"),
        ({"chan_per_worker": 0}, "1 or more"),
    ],
)
def test_wrong_settings_are_one_error_with_advice(large, settings, words):
    with pytest.raises(InputError, match=words):
        ephys.freqanalysis(large, **settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"filter_type": "bp", "freq": 20}, "two different"),
        ({"freq": 400}, "half the sample rate"),
        ({"freq": 20, "direction": "onepass-minphase"}, "does not exist"),
        ({"filter_class": "fir", "freq": 20}, "'firws'"),
        ({"filter_class": None}, "nothing to do"),
        ({"freq": 20, "rectify": True, "hilbert": "abs"}, "exclude"),
    ],
)
def test_wrong_filters_are_one_error_with_advice(large, settings, words):
    with pytest.raises(InputError, match=words):
        ephys.preprocessing(large, **settings)


def test_an_array_is_no_recording():
    with pytest.raises(InputError, match="AnalogData\\(array"):
        ephys.freqanalysis(np.zeros((3, 100, 2)))
