"""Made-up recordings: noise, oscillations, networks, spikes.

Each trial has a random stream of its own, so that no two are alike and the numbers do
not depend on how the work was cut. Large recordings are made in parallel, and go to
disk when they do not fit the memory.
"""

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import signal

from barrow.errors import InputError
from barrow.fields.ephys.computing import Means, generate
from barrow.fields.ephys.kinds import AnalogData
from barrow.fields.ephys.settings import takes_cfg
from barrow.fields.ephys.spikes import SpikeData


@takes_cfg
def white_noise(
    nSamples: int = 1000,  # noqa: N803 - as Syncopy's users write it, here and below
    nChannels: int = 2,  # noqa: N803
    seed: int | None = None,
    *,
    nTrials: int | None = 100,  # noqa: N803
    samplerate: float = 1000,
    **means: Any,
) -> Any:
    """Return white noise with a standard deviation of one.

    Parameters
    ----------
    nTrials, nSamples, nChannels
        Size of the recording; with ``nTrials=None`` one trial is returned as an array.
    samplerate
        Samples for each second.
    seed
        A number gives the same recording each time.
    means
        ``to``, ``memory``, ``parallel``: as for :func:`barrow.ephys.freqanalysis`.

    Examples
    --------
    >>> white_noise(nTrials=3, nSamples=200, nChannels=4, seed=1)
    AnalogData: 3 trials of 200 samples at 1000 Hz, channel 4, float32
    """
    settings = {"shape": (nSamples, nChannels)}
    return _collect(_white, settings, nTrials, samplerate, seed, means)


@takes_cfg
def red_noise(
    alpha: float,
    nSamples: int = 1000,  # noqa: N803
    nChannels: int = 2,  # noqa: N803
    seed: int | None = None,
    *,
    nTrials: int | None = 100,  # noqa: N803
    samplerate: float = 1000,
    **means: Any,
) -> Any:
    """Return noise in which each sample keeps a share ``alpha`` of the one before."""
    if not 0 <= alpha < 1:
        raise InputError(f"alpha={alpha!r} must lie between 0 and 1.")
    settings = {"shape": (nSamples, nChannels), "alpha": float(alpha)}
    return _collect(_red, settings, nTrials, samplerate, seed, means)


@takes_cfg
def linear_trend(
    y_max: float,
    nSamples: int = 1000,  # noqa: N803
    nChannels: int = 2,  # noqa: N803
    *,
    nTrials: int | None = 100,  # noqa: N803
    samplerate: float = 1000,
    **means: Any,
) -> Any:
    """Return straight lines from 0 to ``y_max``."""
    line = np.linspace(0, y_max, nSamples, dtype=np.float32)
    settings = {"course": np.repeat(line[:, None], nChannels, axis=1)}
    return _collect(_same, settings, nTrials, samplerate, 0, means)


@takes_cfg
def harmonic(
    freq: float,
    samplerate: float = 1000,
    nSamples: int = 1000,  # noqa: N803
    nChannels: int = 2,  # noqa: N803
    *,
    nTrials: int | None = 100,  # noqa: N803
    **means: Any,
) -> Any:
    """Return cosines of a frequency in Hz."""
    course = np.cos(2 * np.pi * freq * np.arange(nSamples) / samplerate).astype(np.float32)
    settings = {"course": np.repeat(course[:, None], nChannels, axis=1)}
    return _collect(_same, settings, nTrials, samplerate, 0, means)


@takes_cfg
def phase_diffusion(
    freq: float,
    eps: float = 0.1,
    samplerate: float = 1000,
    nChannels: int = 2,  # noqa: N803
    nSamples: int = 1000,  # noqa: N803
    rand_ini: bool = False,
    return_phase: bool = False,
    seed: int | None = None,
    *,
    nTrials: int | None = 100,  # noqa: N803
    **means: Any,
) -> Any:
    """Return oscillations whose phase wanders.

    Parameters
    ----------
    eps
        Size of the random steps of the phase, relative to its regular ones.
    rand_ini
        Whether each channel begins at a random phase.
    return_phase
        Whether to return the phase itself, in radians.
    """
    settings = {
        "shape": (nSamples, nChannels),
        "step": 2 * np.pi * freq / samplerate,
        "eps": eps,
        "is_random": rand_ini,
        "is_phase": return_phase,
    }
    return _collect(_wander, settings, nTrials, samplerate, seed, means)


@takes_cfg
def ar2_network(
    AdjMat: Any = None,  # noqa: N803
    nSamples: int = 1000,  # noqa: N803
    alphas: Any = (0.55, -0.8),
    seed: int | None = None,
    *,
    nTrials: int | None = 100,  # noqa: N803
    samplerate: float = 1000,
    **means: Any,
) -> Any:
    """Return coupled processes of second order.

    Parameters
    ----------
    AdjMat
        Strength of the coupling from the channel of the row to that of the column; by
        default two channels, the second drives the first.
    alphas
        Share of the last sample, and of the one before. By default there is a peak at a
        fifth of the sample rate.
    """
    coupling = np.asarray([[0, 0], [0.25, 0]] if AdjMat is None else AdjMat, float)
    if coupling.ndim != 2 or coupling.shape[0] != coupling.shape[1]:
        raise InputError(f"AdjMat must have as many rows as columns, not {coupling.shape}.")
    settings = {"n_samples": nSamples, "coupling": coupling, "alphas": tuple(map(float, alphas))}
    return _collect(_network, settings, nTrials, samplerate, seed, means)


def mk_RandomAdjMat(  # noqa: N802
    nChannels: int = 3,  # noqa: N803
    conn_thresh: float = 0.25,
    max_coupling: float = 0.25,
    seed: int | None = None,
) -> np.ndarray:
    """Return random couplings for :func:`ar2_network`; what a channel gets is limited."""
    drawn = np.random.default_rng(seed).random((nChannels, nChannels)) < conn_thresh
    coupling = drawn.astype(float)
    np.fill_diagonal(coupling, 0)
    inputs = coupling.sum(axis=0)
    return np.asarray(coupling / np.where(inputs, inputs, 1) * max_coupling)


@takes_cfg
def poisson_noise(
    nTrials: int = 10,  # noqa: N803
    nSpikes: int = 10000,  # noqa: N803
    nChannels: int = 3,  # noqa: N803
    nUnits: int = 10,  # noqa: N803
    intensity: float = 0.1,
    samplerate: float = 10000,
    seed: int | None = None,
) -> SpikeData:
    """Return random spikes of units that are not equally active.

    Parameters
    ----------
    nSpikes
        Spikes of all trials together.
    intensity
        Spikes for each sample; with the number of spikes it gives the length of trials.

    Examples
    --------
    >>> poisson_noise(nTrials=4, nSpikes=1000, seed=1)
    SpikeData: 1000 spikes in 4 trials, 3 channels, 10 units
    """
    rng = np.random.default_rng(seed)
    total = int(nSpikes / intensity)
    samples = np.sort(rng.choice(total, nSpikes, replace=False))
    weights = [rng.uniform(size=count) for count in (nChannels, nUnits)]
    channels, units = (rng.choice(len(w), nSpikes, p=w / w.sum()) for w in weights)
    step = total // nTrials
    starts = np.arange(nTrials) * step
    lengths = step - 1 - rng.integers(max(1, step // 10), size=nTrials)
    offsets = -rng.integers(int(0.05 * lengths.min()), int(0.2 * lengths.min()) + 1, size=nTrials)
    definition = np.column_stack([starts, starts + lengths, offsets])
    return SpikeData(np.column_stack([samples, channels, units]), samplerate, definition)


def _collect(
    make: Callable[..., np.ndarray],
    settings: dict[str, Any],
    n_trials: int | None,
    samplerate: float,
    seed: int | None,
    means: dict[str, Any],
) -> Any:
    settings = {**settings, "seed": secrets.randbits(64) if seed is None else int(seed)}
    if n_trials is None:
        return make(np.zeros(1, np.int64), **settings)[0]
    if n_trials < 1:
        raise InputError(f"nTrials={n_trials!r}: use 1 or more, or None for a single array.")
    values = generate(make, n_trials, settings, Means(**means))
    made = AnalogData(values, samplerate=samplerate)
    made.note(f"made by {make.__name__.strip('_')}")
    return made


def _streams(numbers: np.ndarray, seed: int) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, int(number)]) for number in numbers]


def _draw(numbers: np.ndarray, seed: int, shape: tuple[int, int]) -> np.ndarray:
    block = np.empty((len(numbers), *shape), np.float32)
    for trial, rng in zip(block, _streams(numbers, seed), strict=True):
        rng.standard_normal(out=trial, dtype=np.float32)
    return block


def _white(numbers: np.ndarray, *, seed: int, shape: tuple[int, int]) -> np.ndarray:
    return _draw(numbers, seed, shape)


def _red(numbers: np.ndarray, *, seed: int, shape: tuple[int, int], alpha: float) -> np.ndarray:
    noise = _draw(numbers, seed, shape)
    return np.asarray(signal.lfilter([1.0], [1.0, -alpha], noise, axis=1), np.float32)


def _same(numbers: np.ndarray, *, seed: int, course: np.ndarray) -> np.ndarray:  # noqa: ARG001
    return np.repeat(course[None], len(numbers), axis=0)


def _wander(
    numbers: np.ndarray,
    *,
    seed: int,
    shape: tuple[int, int],
    step: float,
    eps: float,
    is_random: bool,
    is_phase: bool,
) -> np.ndarray:
    phase = _draw(numbers, seed, shape).cumsum(axis=1, dtype=np.float64)
    phase *= np.sqrt(step * eps)
    phase += (step * np.arange(shape[0]))[:, None]
    if is_random:
        for trial, rng in zip(phase, _streams(numbers, seed + 1), strict=True):
            trial += 2 * np.pi * rng.uniform(size=shape[1])
    return np.asarray(phase if is_phase else np.cos(phase), np.float32)


def _network(
    numbers: np.ndarray,
    *,
    seed: int,
    n_samples: int,
    coupling: np.ndarray,
    alphas: tuple[float, float],
) -> np.ndarray:
    course = _draw(numbers, seed, (n_samples, len(coupling))).astype(np.float64)
    weights = coupling + alphas[0] * np.eye(len(coupling))
    for sample in range(2, n_samples):
        course[:, sample] += course[:, sample - 1] @ weights + alphas[1] * course[:, sample - 2]
    return course.astype(np.float32)
