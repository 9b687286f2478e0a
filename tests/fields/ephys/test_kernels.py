"""The array functions alone, against SciPy and against their definition."""

import numpy as np
import pytest
from scipy import signal

from barrow.errors import InputError
from barrow.fields.ephys.averages import Moments, Total
from barrow.fields.ephys.connecting import (
    add_phases,
    coherence,
    phase_consistency,
    sum_cross_spectra,
)
from barrow.fields.ephys.detrending import detrend
from barrow.fields.ephys.filters import Filter
from barrow.fields.ephys.fourier import mtmconvol, mtmfft
from barrow.fields.ephys.preparing import preprocess
from barrow.fields.ephys.sinc import design_sinc
from barrow.fields.ephys.superlets import choose_orders, scale_of, superlet
from barrow.fields.ephys.tapers import Taper, Tapering
from barrow.fields.ephys.wavelets import Morlet, wavelet

RATE = 1000.0


@pytest.fixture
def trials():
    return np.random.default_rng(0).normal(size=(7, 301, 5)).astype("f4")


def test_a_spectrum_is_the_periodogram_of_scipy(trials):
    ours = mtmfft(trials, taper=Taper("boxcar"))[:, 0, 0]
    _, theirs = signal.periodogram(
        trials.astype(float), RATE, "boxcar", axis=1, scaling="spectrum", detrend="constant"
    )
    assert np.allclose(ours[:, 1:], theirs[:, 1:], rtol=1e-4)


def test_multitaper_power_is_the_mean_over_slepian_tapers(trials):
    chosen = Tapering(tapsmofrq=12).choose(RATE, 301)
    tapers = signal.windows.dpss(301, 12 * 301 / RATE, chosen.count)
    centred = trials.astype(float) - trials.mean(axis=1, keepdims=True, dtype=float)
    spectra = np.fft.rfft(centred[:, None] * tapers[:, :, None], axis=2)
    theirs = (np.abs(spectra) ** 2).mean(axis=1) * 2 / 301
    assert chosen.count == 6
    assert np.allclose(mtmfft(trials, taper=chosen)[:, 0, 0], theirs, rtol=1e-4)


def test_windows_are_those_of_a_spectrogram(trials):
    at = np.arange(50, 251, 25) / RATE
    ours = mtmconvol(trials, window=100, at=at, samplerate=RATE)[:, :, 0]
    window = signal.windows.hann(100)
    _, _, theirs = signal.spectrogram(
        trials.astype(float), RATE, window, 100, 75, axis=1, scaling="spectrum", mode="psd"
    )
    theirs = np.moveaxis(theirs, -1, 1) * window.sum() ** 2 / 100 * 4 / 3 / window.sum()
    assert np.allclose(ours[:, :, 1:-1], theirs[:, :, 1:-1], rtol=1e-4)


def test_welch_is_the_mean_of_its_windows(trials):
    each = mtmconvol(trials, window=64, step=32)
    assert np.allclose(
        mtmconvol(trials, window=64, step=32, average=True)[:, 0], each.mean(axis=1), rtol=1e-5
    )


def test_coherence_is_that_of_scipy(trials):
    mixed = trials + trials[..., :1]
    ours = coherence(sum_cross_spectra(mixed).mean(), "pow")[0, :, 0, 1]
    flat = mixed.reshape(-1, 5).astype(float)
    window = signal.windows.hann(301)
    _, theirs = signal.coherence(flat[:, 0], flat[:, 1], RATE, window, 301, 0)
    assert np.allclose(ours, theirs, rtol=1e-4)


def test_a_morlet_transform_is_that_of_mne_but_for_its_scale(trials):
    mne = pytest.importorskip("mne")
    freqs = np.array([40.0, 80.0])
    scales = 6 / (2 * np.pi * freqs)
    ours = wavelet(
        trials, samplerate=RATE, scales=scales, shape=Morlet(6), polyremoval=None, output="abs"
    )
    theirs = np.abs(
        mne.time_frequency.tfr_array_morlet(
            trials.transpose(0, 2, 1).astype(float), RATE, freqs, 6, verbose="error"
        )
    )
    inner = slice(120, 180)
    ours, theirs = ours[:, inner, 0].transpose(2, 0, 3, 1), theirs[..., inner].transpose(2, 0, 1, 3)
    for one, other in zip(ours, theirs, strict=True):
        assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.999


@pytest.mark.parametrize("order", [0, 1])
def test_detrending_is_that_of_scipy_even_with_a_large_offset(trials, order):
    shifted = trials + np.float32(5000)
    kind = ("constant", "linear")[order]
    theirs = signal.detrend(shifted.astype(float), type=kind, axis=1)
    assert np.allclose(detrend(shifted, order), theirs, atol=2e-3)
    assert np.abs(detrend(shifted, order).mean(axis=1)).max() < 1e-5


@pytest.mark.parametrize("n_samples", [1, 2, 3, 64, 97])
def test_trials_of_any_length_have_a_spectrum(n_samples):
    block = np.random.default_rng(1).normal(size=(2, n_samples, 1)).astype("f4")
    assert mtmfft(block, taper=Taper("boxcar")).shape == (2, 1, 1, n_samples // 2 + 1, 1)


def test_short_trials_in_a_padded_block_have_the_spectrum_they_have_alone(trials):
    lengths = np.array([301, 120, 301, 77, 200, 120, 301])
    block = trials.copy()
    for trial, length in zip(block, lengths, strict=True):
        trial[length:] = 99
    together = mtmfft(block, lengths)
    for number, length in enumerate(lengths):
        alone = mtmfft(trials[number : number + 1, :length], padded=301)
        assert np.allclose(together[number], alone[0], rtol=1e-5)


def test_a_nan_stays_in_its_trial_and_channel(trials):
    trials[2, 50, 3] = np.nan
    power = mtmfft(trials)
    holes = np.isnan(power)
    assert holes[2, ..., 3].all()
    assert holes.sum() == holes[2, ..., 3].size
    assert np.isfinite(Total.of(power).mean()).all()


def test_a_nan_meets_only_the_samples_within_reach_of_a_fir_filter(trials):
    trials[1, 150, 0] = np.nan
    chosen = Filter("firws", "lp", (50.0,), 20, "onepass", RATE)
    holes = np.isnan(preprocess(trials, chosen=chosen))
    assert holes[1, :, 0].sum() == 21
    assert holes.sum() == 21


def test_phase_consistency_is_the_mean_over_all_pairs_of_trials():
    rng = np.random.default_rng(2)
    spectra = rng.normal(size=(6, 1, 1, 4, 2)) + 1j * rng.normal(size=(6, 1, 1, 4, 2))
    phase = np.angle(spectra[:, 0, 0, :, 0] * spectra[:, 0, 0, :, 1].conj())
    pairs = [np.cos(phase[i] - phase[j]) for i in range(6) for j in range(i)]
    ours = phase_consistency(add_phases(spectra))[0, :, 0, 1]
    assert np.allclose(ours, np.mean(pairs, axis=0))


def test_a_superlet_of_one_order_is_a_wavelet_with_its_cycles(trials):
    freqs = np.array([30.0, 60.0])
    orders, exponents = choose_orders(freqs, 1)
    settings = {"samplerate": RATE, "scales": scale_of(1 / freqs), "exponents": exponents}
    power = superlet(trials, cycles=3 * orders, **settings)
    phase = superlet(trials, cycles=3 * orders, output="fourier", **settings)
    assert np.allclose(power, np.abs(phase) ** 2, rtol=1e-4)


def test_moments_of_parts_are_those_of_the_whole(trials):
    parts = Moments.of(trials[:2], covariance=True) + Moments.of(trials[2:], covariance=True)
    assert np.allclose(parts.average(), trials.mean(axis=0), atol=1e-6)
    assert np.allclose(parts.variance(), trials.var(axis=0), rtol=1e-5)
    expected = np.mean([np.cov(trial, rowvar=False) for trial in trials], axis=0)
    assert np.allclose(parts.covariance.mean(), expected, rtol=1e-5)


@pytest.mark.parametrize(("band", "gains"), [("lp", (1, 0)), ("hp", (0, 1))])
def test_a_sinc_filter_passes_one_side_and_stops_the_other(band, gains):
    gain = np.abs(np.fft.rfft(design_sinc("hamming", 200, [0.2], band), 1000))
    assert np.allclose((gain[100], gain[300]), gains, atol=0.01)


def test_a_wrong_taper_is_refused_with_advice():
    with pytest.raises(InputError, match="tapsmofrq=2"):
        Tapering("dpss").choose(RATE, 100)
    with pytest.raises(InputError, match="beta"):
        Tapering("kaiser").choose(RATE, 100)
