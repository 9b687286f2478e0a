"""How channels belong together: cross spectra, coherence, phase consistency, correlation.

Each measure is made of sums over trials, so that blocks of trials can be worked on
one by one and their sums added up.
"""

from typing import Any

import numpy as np
from scipy import fft

from barrow.fields.ephys.averages import Total
from barrow.fields.ephys.detrending import detrend
from barrow.fields.ephys.fourier import mtmfft
from barrow.fields.ephys.outputs import convert


def cross_spectra(
    trials: np.ndarray, lengths: np.ndarray | None = None, **settings: Any
) -> np.ndarray:
    """Return the cross spectra of all pairs of channels, for each trial.

    Parameters
    ----------
    trials
        Trial × time × channel.
    settings
        As for :func:`barrow.fields.ephys.fourier.mtmfft`.

    Returns
    -------
    array
        Trial × 1 × frequency × channel × channel, averaged over tapers. The phase is
        that of the first channel minus that of the second.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(4, 100, 3)).astype("f4")
    >>> cross_spectra(noise).shape
    (4, 1, 51, 3, 3)
    """
    return multiply_channels(mtmfft(trials, lengths, output="fourier", keeptapers=True, **settings))


def multiply_channels(spectra: np.ndarray) -> np.ndarray:
    """Return the products of all pairs of channels, averaged over tapers.

    Parameters
    ----------
    spectra
        Trial × time × taper × frequency × channel.

    Returns
    -------
    array
        Trial × time × frequency × channel × channel.
    """
    columns = spectra.transpose(0, 1, 3, 4, 2)
    found: np.ndarray = columns @ columns.conj().swapaxes(-1, -2)
    found /= spectra.shape[2]
    return found


def sum_cross_spectra(
    trials: np.ndarray, lengths: np.ndarray | None = None, **settings: Any
) -> Total:
    """Return the cross spectra of trials × time × channel, added up over trials."""
    spectra = mtmfft(trials, lengths, output="fourier", keeptapers=True, **settings)
    return add_products(spectra)


def add_products(spectra: np.ndarray) -> Total:
    """Return the products of all pairs of channels, added up over trials.

    Parameters
    ----------
    spectra
        Trial × time × taper × frequency × channel. A channel with NaN in a trial is
        left out there.
    """
    n_trials, _, n_tapers, _, _ = spectra.shape
    holes = np.isnan(spectra).any(axis=(1, 2, 3))
    counts: Any = n_trials
    if holes.any():
        spectra = np.where(np.isnan(spectra), 0, spectra)
        present = (~holes).astype(float)
        counts = present.T @ present
    # time × frequency × channel × (trial, taper): one product of matrices each.
    columns = spectra.transpose(1, 3, 4, 0, 2).reshape(*np.array(spectra.shape)[[1, 3, 4]], -1)
    columns = np.ascontiguousarray(columns)
    products = columns @ columns.conj().swapaxes(-1, -2)
    return Total(products.astype(np.complex128) / n_tapers, counts)


def sum_phases(trials: np.ndarray, lengths: np.ndarray | None = None, **settings: Any) -> Total:
    """Return the directions of the cross spectra of trials, added up as unit vectors."""
    return add_phases(mtmfft(trials, lengths, output="fourier", keeptapers=True, **settings))


def add_phases(spectra: np.ndarray) -> Total:
    """Return the directions of the products of channels, added up over trials."""
    total: Any = None
    for trial in spectra:
        products = multiply_channels(trial[None])
        with np.errstate(invalid="ignore", divide="ignore"):
            part = Total.of(products / np.abs(products))
        total = part if total is None else total + part
    assert isinstance(total, Total)
    return total


def coherence(csd: np.ndarray, output: str = "abs") -> np.ndarray:
    """Return the coherency of averaged cross spectra.

    Examples
    --------
    >>> coherence(np.array([[4, 2j], [-2j, 4]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    power = np.diagonal(csd, axis1=-2, axis2=-1).real
    with np.errstate(invalid="ignore", divide="ignore"):
        found = csd / np.sqrt(power[..., :, None] * power[..., None, :])
    return convert(found, output)


def phase_consistency(phases: Total) -> np.ndarray:
    """Return the pairwise phase consistency of Vinck et al. (2010).

    The mean cosine of the phase differences of all pairs of trials follows from the
    length of the sum of unit vectors: no pair has to be looked at.

    Examples
    --------
    >>> float(phase_consistency(Total(np.array(3 + 0j), 3)))
    1.0
    """
    counts = phases.counts
    length = np.abs(phases.values) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (length - counts) / (counts * (np.asarray(counts) - 1.0))
    return np.asarray(found, np.float32)


def cross_covariance(
    trials: np.ndarray, *, polyremoval: int | None = 0, normalise: bool = False
) -> np.ndarray:
    """Return the covariance of all pairs of channels at lags from 0 to half a trial.

    Parameters
    ----------
    trials
        Trial × time × channel.
    normalise
        Whether to divide by the standard deviations of the trial.

    Returns
    -------
    array
        Trial × lag × 1 × channel × channel, unbiased: at lag k the mean of
        x[t + k] · y[t] over all t.

    Examples
    --------
    >>> pulse = np.zeros((1, 8, 2)); pulse[0, 3, 0] = pulse[0, 2, 1] = 1
    >>> found = cross_covariance(pulse, polyremoval=None)[0, :, 0]
    >>> found.shape, int(found[:, 0, 1].argmax())
    ((4, 2, 2), 1)
    """
    n_trials, length, channels = trials.shape
    lags = -(-length // 2)
    answer = np.empty((n_trials, lags, 1, channels, channels), np.float32)
    size = fft.next_fast_len(2 * length, real=True)
    overlap = length - np.arange(lags)
    for number, signals in enumerate(trials):
        signals = detrend(np.asarray(signals, float), polyremoval)
        spectrum = fft.rfft(signals, size, axis=0)
        products = spectrum[:, :, None] * spectrum[:, None, :].conj()
        found = fft.irfft(products, size, axis=0, overwrite_x=True)[:lags]
        found /= overlap[:, None, None]
        if normalise:
            spread = signals.std(axis=0)
            found /= spread[:, None] * spread
        answer[number, :, 0] = found
    return answer


def sum_covariances(trials: np.ndarray, *, polyremoval: int | None = 0) -> Total:
    """Return the covariances at all lags, added up over trials."""
    return Total.of(cross_covariance(trials, polyremoval=polyremoval))


def correlation(covariance: np.ndarray) -> np.ndarray:
    """Return averaged covariances (lag × 1 × channel × channel) as correlations."""
    variance = np.diagonal(covariance[0, 0])
    found = covariance / np.sqrt(variance[:, None] * variance)
    return np.asarray(found, np.float32)
