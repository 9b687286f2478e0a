"""Trials at the edge of what can be analysed: short, odd, alone, unequal, with holes."""

import numpy as np
import pytest
from scipy import signal

from barrow import ephys
from barrow.errors import InputError
from barrow.fields.ephys import filters
from barrow.fields.ephys.filters import Filter
from barrow.fields.ephys.tapers import Tapering

RATE = 200.0

METHODS = {
    "mtmfft": {},
    "tapers": {"tapsmofrq": 8},
    "mtmconvol": {"method": "mtmconvol", "t_ftimwin": 0.1, "toi": 0.5},
    "welch": {"method": "welch", "t_ftimwin": 0.1, "toi": 0.5},
    "wavelet": {"method": "wavelet", "foi": [20, 40]},
    "superlet": {"method": "superlet", "foi": [20, 40], "order_max": 3},
}


def record(*shape, seed=0):
    return ephys.AnalogData(np.random.default_rng(seed).normal(size=shape).astype("f4"), RATE)


@pytest.mark.parametrize("settings", METHODS.values(), ids=METHODS)
def test_a_channel_alone_has_the_spectra_it_has_among_others(settings):
    rec = record(3, 101, 4)
    alone = ephys.freqanalysis(rec.selectdata(channel=[2]), **settings)
    assert np.allclose(alone.cube(), ephys.freqanalysis(rec, **settings).cube()[..., 2:3])


@pytest.mark.parametrize("settings", METHODS.values(), ids=METHODS)
def test_a_trial_has_the_spectra_it_has_alone_whatever_the_others_last(settings):
    rng = np.random.default_rng(1)
    trials = [rng.normal(size=(n, 2)).astype("f4") for n in (99, 64, 81)]
    # Frequencies and the number of tapers follow from all trials; here they are given.
    settings = {**settings, "foi": [20, 40]} | ({"nTaper": 3} if "tapsmofrq" in settings else {})
    if "method" not in settings:
        settings["pad"] = 1.0
    together = ephys.freqanalysis(ephys.AnalogData(trials, RATE), **settings)
    for number, trial in enumerate(trials):
        alone = ephys.freqanalysis(ephys.AnalogData([trial], RATE), **settings)
        if "tapsmofrq" not in settings:  # the bandwidth follows from their mean length
            assert np.allclose(together.trials[number], alone.trials[0], rtol=1e-4)
        assert np.isfinite(together.trials[number]).all()


@pytest.mark.parametrize("settings", METHODS.values(), ids=METHODS)
def test_a_nan_spoils_its_channel_of_its_trial_and_is_reported(settings):
    values = record(4, 101, 3).cube()
    values[2, 50, 1] = np.nan
    with pytest.warns(UserWarning, match="1 of 4 trials have NaN: 2") as caught:
        found = ephys.freqanalysis(ephys.AnalogData(values, RATE), **settings)
    assert found.info["nan_trials"] == [2]
    assert caught[0].filename == __file__
    holes = np.isnan(found.cube()).any(axis=(1, 2, 3))
    assert np.argwhere(holes).tolist() == [[2, 1]]


def test_a_single_sample_has_a_spectrum_and_no_windows():
    one = record(2, 1, 2)
    power = ephys.freqanalysis(one, taper=None, polyremoval=None)
    assert np.allclose(power.data[:, 0, 0], 2 * np.asarray(one.data) ** 2)
    low = ephys.preprocessing(one, filter_type="lp", freq=20, direction="onepass")
    assert low.data.shape == (2, 2)
    with pytest.raises(InputError, match=r"from 0\.005 to 0\.005"):
        ephys.freqanalysis(one, method="mtmconvol", t_ftimwin=0.1)


def test_trials_too_short_for_two_passes_are_refused_with_what_is_needed():
    with pytest.raises(InputError, match=r"20 samples.*more than 27.*onepass"):
        ephys.preprocessing(record(2, 20, 2), filter_type="bp", freq=[20, 40])


@pytest.mark.parametrize("direction", ["twopass", "onepass"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
@pytest.mark.parametrize("shape", [(1, 40, 1), (3, 101, 5), (2, 64, 17), (20, 33, 1)])
def test_a_compiled_filter_has_the_bits_of_scipy(shape, dtype, direction):
    trials = (100 * np.random.default_rng(2).normal(size=shape)).astype(dtype)
    trials[0, 5, 0] = 0
    chosen = Filter("but", "bp", (20.0, 40.0), 3, direction, RATE, is_compiled=True)
    run = signal.sosfiltfilt if direction == "twopass" else signal.sosfilt
    theirs = run(chosen.coefficients(), trials, axis=1)
    assert np.array_equal(chosen(trials).astype("f4"), theirs.astype("f4"))


def test_a_compiled_filter_reads_any_strides_and_keeps_nan_to_its_channel():
    cube = np.random.default_rng(3).normal(size=(4, 90, 6)).astype("f4")
    cube[1, 40, 2] = np.nan
    cube.flags.writeable = False
    view = cube[:, 5:85, 1:4]
    chosen = Filter("but", "hp", (10.0,), 4, "twopass", RATE, is_compiled=True)
    theirs = signal.sosfiltfilt(chosen.coefficients(), view, axis=1).astype("f4")
    ours = chosen(view)
    assert np.array_equal(ours, theirs, equal_nan=True)
    assert np.argwhere(np.isnan(ours).any(axis=1)).tolist() == [[1, 1]]


def test_large_recordings_are_filtered_by_the_compiled_filter(monkeypatch):
    monkeypatch.setattr(filters, "COMPILED_SAMPLES", 1000)
    rec = record(4, 200, 3)
    band = ephys.preprocessing(rec, filter_type="bp", freq=[20, 40])
    sos = signal.butter(4, [20, 40], "bp", fs=RATE, output="sos")
    theirs = signal.sosfiltfilt(sos, rec.cube(), axis=1).astype("f4")
    assert np.array_equal(band.cube(), theirs)


def test_multitaper_power_is_that_of_mne():
    mne = pytest.importorskip("mne")
    rec = record(3, 401, 2)
    ours = ephys.freqanalysis(rec, tapsmofrq=4, polyremoval=0)
    centred = rec.cube().astype(float)
    centred -= centred.mean(axis=1, keepdims=True)
    spectra, freqs, _ = mne.time_frequency.psd_array_multitaper(
        centred.transpose(0, 2, 1),
        RATE,
        bandwidth=8,
        adaptive=False,
        low_bias=False,
        output="complex",
        verbose="error",
    )
    count = Tapering(tapsmofrq=4).choose(RATE, 401).count
    theirs = (np.abs(spectra[:, :, :count]) ** 2).mean(axis=2) * 2 / 401
    assert np.allclose(ours.freq, freqs)
    # MNE's tapers are periodic, ours symmetric; at 0 Hz it gives half of what we give.
    assert np.allclose(ours.cube()[:, 0, 0, 1:].transpose(0, 2, 1), theirs[..., 1:], rtol=0.03)


def test_welch_is_that_of_scipy_where_windows_are_whole():
    rec = record(2, 1000, 2)
    ours = ephys.freqanalysis(rec, method="mtmconvol", t_ftimwin=0.5, toi=0.5)
    window = signal.windows.hann(100)
    whole = ours.cube()[:, 1:, 0].mean(axis=1)
    _, theirs = signal.welch(
        rec.cube().astype(float), RATE, window, 100, 50, axis=1, scaling="spectrum"
    )
    theirs = theirs * window.sum() ** 2 / 100 * 4 / 3 / window.sum()
    assert np.allclose(whole[:, 1:-1], theirs[:, 1:-1], rtol=1e-3)
