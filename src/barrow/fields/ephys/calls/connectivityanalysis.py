"""How pairs of channels belong together."""

from dataclasses import replace
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys import connecting
from barrow.fields.ephys.analysis import Analysis, Trialing, one_length
from barrow.fields.ephys.calls.calling import analysis_call
from barrow.fields.ephys.computing import Means, add_up, compute
from barrow.fields.ephys.granger import causality
from barrow.fields.ephys.kinds import AnalogData, CrossSpectralData, SpectralData
from barrow.fields.ephys.requests import Request
from barrow.fields.ephys.selecting import pick
from barrow.fields.ephys.spectra import choose_mtmfft
from barrow.fields.ephys.tapers import Tapering

METHODS = ("coh", "csd", "ppc", "corr", "granger")


@analysis_call(AnalogData, SpectralData)
def connectivityanalysis(
    data: AnalogData | SpectralData,
    method: str = "coh",
    keeptrials: bool = False,
    output: str = "abs",
    foi: Any = None,
    foilim: Any = None,
    pad: Any = "maxperlen",
    channelcmb: Any = None,
    polyremoval: int | None = 0,
    tapsmofrq: float | None = None,
    nTaper: int | None = None,  # noqa: N803 - as FieldTrip's users write it
    taper: str | None = "hann",
    taper_opt: Any = None,
    *,
    means: Means,
) -> CrossSpectralData:
    """Return how pairs of channels belong together.

    Arguments that are not listed here are those of :func:`freqanalysis`.

    Parameters
    ----------
    data
        A recording, or its complex spectra (``output="fourier"``).
    method
        ``"coh"``: coherence; ``"csd"``: cross spectra; ``"ppc"``: pairwise phase
        consistency; ``"corr"``: correlation at lags up to half a trial;
        ``"granger"``: spectral Granger causality from the first channel to the second.
    keeptrials
        For csd and corr: whether to return each trial.
    output
        For coh: ``"abs"``, ``"pow"``, ``"complex"``, ``"angle"``, ``"real"`` or ``"imag"``.
    channelcmb
        Two lists of channels: from, and to; by default all pairs.
    """
    if method not in METHODS:
        raise InputError(f"method={method!r} is unknown. Use one of {', '.join(METHODS)}.")
    if keeptrials and method not in ("csd", "corr"):
        raise InputError(f"keeptrials=True: method={method!r} is made of averages over trials.")
    if method != "corr" and len(data.trials) < 2:
        raise InputError(f"method={method!r} compares trials, but there is only one.")
    if channelcmb is not None and means.to is not None:
        raise InputError("channelcmb= and to= exclude each other: a store holds all pairs.")
    if method == "corr":
        made = _correlate(data, keeptrials, polyremoval, means)
    elif isinstance(data, SpectralData):
        made = _connect(data, _use_spectra(data), method, keeptrials, output, means)
    else:
        trials = Trialing(data.samplerate, data.lengths, data.offsets)
        asked = Request.check(trials, foi, foilim, "fourier", polyremoval)
        tapering = Tapering(taper, taper_opt, tapsmofrq, nTaper)
        work = _make_spectra(asked, tapering, pad, method)
        made = _connect(data, work, method, keeptrials, output, means)
    return made if channelcmb is None else _pick_pairs(made, *channelcmb)


def _use_spectra(data: SpectralData) -> Analysis:
    if data.dtype.kind != "c":
        raise InputError(
            f"The spectra are {data.dtype}. Connectivity needs complex ones: "
            "freqanalysis(..., output='fourier')."
        )
    lengths = one_length(data.lengths, "connectivityanalysis")
    func, labels = connecting.multiply_channels, {"freq": data.freq}
    return Analysis("spectra", func, {}, data.samplerate, lengths, data.offsets, labels)


def _make_spectra(asked: Request, tapering: Tapering, pad: Any, method: str) -> Analysis:
    """Return the spectra of whole trials, as the array functions for cross spectra take them."""
    is_granger = method == "granger"
    if is_granger and (asked.foi is not None or asked.foilim is not None):
        raise InputError("method='granger' needs all frequencies: leave out foi= and foilim=.")
    whole = choose_mtmfft(asked, tapering, keeptapers=True, pad=pad, demean_taper=is_granger)
    chosen = ("output", "keeptapers")  # by the array functions themselves
    return replace(
        whole,
        name="cross spectra",
        func=connecting.cross_spectra,
        settings={key: value for key, value in whole.settings.items() if key not in chosen},
        labels={"freq": whole.labels["freq"]},
        nanoseconds=20.0,
    )


def _connect(
    data: AnalogData | SpectralData,
    work: Analysis,
    method: str,
    keeptrials: bool,
    output: str,
    means: Means,
) -> CrossSpectralData:
    is_spectral = isinstance(data, SpectralData)
    info: dict[str, Any] = {}
    offsets = work.offsets[:1] if is_spectral else np.zeros(1)
    values: Any
    if keeptrials:
        values = compute(data, work, means)
        offsets = work.offsets
    elif method == "ppc":
        func = connecting.add_phases if is_spectral else connecting.sum_phases
        values = connecting.phase_consistency(add_up(data, work, func, means))[None]
        values = values.reshape(1, *values.shape[-4:])
    else:
        func = connecting.add_products if is_spectral else connecting.sum_cross_spectra
        csd = add_up(data, work, func, means).mean()
        if method == "coh":
            values = connecting.coherence(csd, output)[None]
        elif method == "csd":
            values = csd.astype(np.complex64)[None]
        else:
            values, info = _find_causes(csd)
    made = CrossSpectralData(
        values,
        data.samplerate,
        offsets=offsets,
        channel_i=data.channel,
        channel_j=data.channel,
        **work.labels,
    )
    made.info = info
    return made


def _find_causes(csd: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    if len(csd) != 1:
        raise InputError("method='granger' needs spectra of whole trials, without times.")
    # The spectra have single precision; what lies beyond it is noise to the factorisation.
    found = causality(csd[0].astype(np.complex64))
    info = {
        "converged": found.converged,
        "max rel. err": found.error,
        "reg. factor": found.added,
        "initial cond. num": found.condition,
    }
    return found.values[None, None], info


def _correlate(
    data: AnalogData | SpectralData, keeptrials: bool, polyremoval: int | None, means: Means
) -> CrossSpectralData:
    if not isinstance(data, AnalogData):
        raise InputError("method='corr' needs a recording, not spectra.")
    length = int(one_length(data.lengths, "method='corr'")[0])
    settings: dict[str, Any] = {"polyremoval": polyremoval}
    work = Analysis(
        "correlation",
        connecting.cross_covariance,
        settings | ({"normalise": True} if keeptrials else {}),
        data.samplerate,
        np.full(len(data.trials), -(-length // 2)),
        data.offsets,
    )
    values: Any
    if keeptrials:
        values = compute(data, work, means)
    else:
        total = add_up(data, work, connecting.sum_covariances, means)
        values = connecting.correlation(total.mean())[None]
    return CrossSpectralData(
        values, data.samplerate, freq=[0.0], channel_i=data.channel, channel_j=data.channel
    )


def _pick_pairs(made: CrossSpectralData, senders: Any, receivers: Any) -> CrossSpectralData:
    everything = np.arange(len(made.channel_i))
    rows, columns = (
        everything if found is None else found
        for found in (
            pick(senders, made.channel_i, "channelcmb"),
            pick(receivers, made.channel_j, "channelcmb"),
        )
    )
    return made.like(
        made.cube()[..., rows, :][..., columns],
        offsets=made.offsets,
        channel_i=made.channel_i[rows],
        channel_j=made.channel_j[columns],
    )
