"""The calls: frequency analysis, filters, connectivity, averages; named as in FieldTrip."""

import os
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys import connecting
from barrow.fields.ephys.averages import Moments, Total, covariances
from barrow.fields.ephys.computing import Averaged, Means, add_up, compute, report_nan
from barrow.fields.ephys.data import (
    AnalogData,
    CrossSpectralData,
    SpectralData,
    TimeLockData,
    TrialData,
)
from barrow.fields.ephys.files import describe_store
from barrow.fields.ephys.filters import choose_filter
from barrow.fields.ephys.frequencies import as_slice, choose_foi, choose_padding, match_bins
from barrow.fields.ephys.granger import causality
from barrow.fields.ephys.preparing import HILBERT, preprocess
from barrow.fields.ephys.resampling import count_samples, downsample, resample
from barrow.fields.ephys.selecting import pick
from barrow.fields.ephys.settings import takes_cfg
from barrow.fields.ephys.spectra import Analysis, Trialing, check_polyremoval, choose_spectra
from barrow.fields.ephys.tapers import choose_taper

Kind = TypeVar("Kind", bound=TrialData)

CONNECTIVITY = ("coh", "csd", "ppc", "corr", "granger")


@takes_cfg
def freqanalysis(
    data: AnalogData,
    method: str = "mtmfft",
    output: str = "pow",
    keeptrials: bool = True,
    foi: Any = None,
    foilim: Any = None,
    pad: Any = "maxperlen",
    polyremoval: int | None = 0,
    taper: str | None = "hann",
    demean_taper: bool = False,
    taper_opt: Any = None,
    tapsmofrq: float | None = None,
    nTaper: int | None = None,  # noqa: N803 - as FieldTrip's users write it
    keeptapers: bool = False,
    toi: Any = "all",
    t_ftimwin: float | None = None,
    wavelet: str = "Morlet",
    width: float = 6,
    order: int | None = None,
    order_max: int | None = None,
    order_min: int = 1,
    c_1: int = 3,
    adaptive: bool = False,
    ft_compat: bool = False,
    *,
    select: Any = None,
    parallel: bool | None = None,
    chan_per_worker: int | None = None,
    to: Any = None,
    memory: Any = None,
    cluster: Any = None,
    quiet: bool = False,
) -> SpectralData:
    """Return spectra of all trials and channels.

    Parameters
    ----------
    data
        A recording.
    method
        ``"mtmfft"``: spectra of whole trials, by one or several tapers.
        ``"mtmconvol"``: of sliding windows. ``"welch"``: their average over time.
        ``"wavelet"``, ``"superlet"``: at each time.
    output
        ``"pow"``, ``"abs"``, ``"fourier"``, ``"real"``, ``"imag"`` or ``"angle"``.
    keeptrials
        Whether to return each trial, or their average.
    foi, foilim
        Frequencies in Hz, or lowest and highest; by default all.
    pad
        For mtmfft: ``"maxperlen"``, ``"nextpow2"``, or seconds.
    polyremoval
        What is removed first: 0 for the mean, 1 for a line, None for nothing.
    taper, taper_opt
        A window of ``scipy.signal.windows`` and its options; None for none.
    tapsmofrq, nTaper, keeptapers
        Multitapering: half the bandwidth in Hz, number of tapers, whether to keep each.
    toi, t_ftimwin
        Times of interest, or the overlap of windows (0 to 1), or ``"all"``; length of
        a window in seconds.
    wavelet, width, order
        ``"Morlet"`` with its width, ``"Paul"`` or ``"DOG"`` with its order, ``"Ricker"``.
    order_max, order_min, c_1, adaptive
        Orders of a superlet, cycles of its first wavelet, whether orders grow with
        frequency.
    select
        A dictionary for ``selectdata``.
    parallel
        False for one core. By default a Dask client that is alive is used; without
        one barrow decides by measurement.
    chan_per_worker
        Channels in one task; by default barrow chooses.
    to
        A Zarr store for the result; the same call takes up an interrupted run.
    memory
        Most memory that may be used, for example ``"1GB"``.

    Examples
    --------
    >>> from barrow import ephys
    >>> noise = ephys.synthdata.white_noise(nTrials=4, nChannels=2, nSamples=500, seed=1)
    >>> ephys.freqanalysis(noise, foilim=[1, 40], tapsmofrq=4)
    SpectralData: 4 trials of 1 samples at 1000 Hz, taper 1 × freq 20 × channel 2, float32
    """
    settings = {key: value for key, value in locals().items() if key not in _NOT_SETTINGS}
    data = _choose(data, select, AnalogData)
    if to is not None and not keeptrials:
        raise InputError("to= is for each trial: an average over trials is small. Use save().")
    asked = {k: v for k, v in settings.items() if k not in ("keeptrials", "chan_per_worker")}
    asked = {k: v for k, v in asked.items() if k not in ("parallel", "select")}
    analysis = choose_spectra(_describe(data), **asked)
    means = Means(parallel, chan_per_worker, to, memory, cluster, quiet)
    offsets, info = analysis.offsets, {}
    values: Any
    if keeptrials:
        values = compute(data, analysis, means)
        info = report_nan({}, np.isnan(values[:, 0, 0, 0, :]).any(axis=1))
        lengths = analysis.lengths
    else:
        lengths = _one_length(analysis.lengths, "keeptrials=False")
        total = add_up(data, analysis, Averaged(analysis.func), means)
        values = total.mean().astype(np.complex64 if np.iscomplexobj(total.values) else np.float32)
        values, offsets = values[None], offsets.mean(keepdims=True)
        info = _count_nan(total, len(data.trials))
    made: SpectralData = _wrap(
        SpectralData,
        values,
        analysis.samplerate,
        lengths=lengths,
        offsets=offsets,
        channel=data.channel,
        **analysis.labels,
    )
    made.info |= info
    made.inherit(data, "freqanalysis", settings)
    return _place(made, to if keeptrials else None)


@takes_cfg
def preprocessing(
    data: AnalogData,
    filter_class: str | None = "but",
    filter_type: str = "lp",
    freq: Any = None,
    order: int | None = None,
    direction: str | None = "twopass",
    window: str = "hamming",
    polyremoval: int | None = None,
    zscore: bool = False,
    rectify: bool = False,
    hilbert: str | bool | None = False,
    *,
    select: Any = None,
    parallel: bool | None = None,
    chan_per_worker: int | None = None,
    to: Any = None,
    memory: Any = None,
    cluster: Any = None,
    quiet: bool = False,
) -> AnalogData:
    """Return filtered trials.

    Z-score comes first, then detrending and the filter, then rectification or the
    Hilbert transform; all in one pass over the data.

    Parameters
    ----------
    filter_class
        ``"but"``: Butterworth; ``"firws"``: windowed sinc; None: no filter.
    filter_type
        ``"lp"``, ``"hp"``, ``"bp"`` or ``"bs"``.
    freq
        One frequency in Hz, or two for a band.
    order
        Order of the filter: 4 for Butterworth, 1000 or the shortest trial for FIR.
    direction
        ``"twopass"``, ``"onepass"``, and for FIR ``"onepass-minphase"``.
    window
        Window of a FIR filter: ``"hamming"``, ``"hann"`` or ``"blackman"``.
    polyremoval, zscore, rectify
        Whether to remove mean or line, to standardise, to take absolute values.
    hilbert
        What to return of the analytic signal: ``"abs"`` for the envelope, ``"angle"``
        for the phase, ``"complex"`` and so on.

    The others are those of :func:`freqanalysis`.

    Examples
    --------
    >>> from barrow import ephys
    >>> noise = ephys.synthdata.white_noise(nTrials=4, nChannels=2, nSamples=500, seed=1)
    >>> ephys.preprocessing(noise, filter_type="bp", freq=[20, 40])
    AnalogData: 4 trials of 500 samples at 1000 Hz, channel 2, float32
    """
    settings = {key: value for key, value in locals().items() if key not in _NOT_SETTINGS}
    data = _choose(data, select, AnalogData)
    check_polyremoval(polyremoval)
    if hilbert and hilbert not in HILBERT:
        raise InputError(f"hilbert={hilbert!r} is unknown. Use one of {', '.join(HILBERT)}.")
    if rectify and hilbert:
        raise InputError("rectify= and hilbert= exclude each other. Leave one out.")
    if filter_class is None and polyremoval is None and not zscore and not rectify and not hilbert:
        raise InputError("There is nothing to do: choose a filter, polyremoval=, zscore= or so.")
    chosen = None
    if filter_class is not None:
        chosen = choose_filter(
            filter_class,
            filter_type=filter_type,
            freq=freq,
            order=order,
            direction=direction,
            window=window,
            samplerate=data.samplerate,
            shortest=int(data.lengths.min()),
        ).compiled_for(int(data.lengths.sum()) * len(data.channel))
    analysis = Analysis(
        "preprocessing",
        preprocess,
        {
            "chosen": chosen,
            "polyremoval": polyremoval,
            "zscore": bool(zscore),
            "rectify": bool(rectify),
            "hilbert": hilbert or None,
        },
        data.samplerate,
        data.lengths,
        data.offsets,
        beside="lengths",
        nanoseconds=10.0,
    )
    means = Means(parallel, chan_per_worker, to, memory, cluster, quiet)
    made = _analog(data, analysis, means)
    made.inherit(data, "preprocessing", settings)
    return _place(made, to)


@takes_cfg
def resampledata(
    data: AnalogData,
    resamplefs: float = 1.0,
    method: str = "resample",
    lpfreq: float | None = None,
    order: int | None = None,
    *,
    select: Any = None,
    parallel: bool | None = None,
    chan_per_worker: int | None = None,
    to: Any = None,
    memory: Any = None,
    cluster: Any = None,
    quiet: bool = False,
) -> AnalogData:
    """Return trials at a lower sample rate.

    Parameters
    ----------
    resamplefs
        The new rate in Hz.
    method
        ``"resample"``: any rate, with a filter against aliases; ``"downsample"``: every
        n-th sample, with a filter only if ``lpfreq`` is given.
    lpfreq
        Cut-off of the filter; by default half the new rate.
    order
        Its order; by default 1000, or the shortest trial.

    The others are those of :func:`freqanalysis`.
    """
    settings = {key: value for key, value in locals().items() if key not in _NOT_SETTINGS}
    data = _choose(data, select, AnalogData)
    if method not in ("resample", "downsample"):
        raise InputError(f"method={method!r} is unknown. Use 'resample' or 'downsample'.")
    if not 0 < resamplefs <= data.samplerate:
        raise InputError(
            f"resamplefs={resamplefs!r} must lie between 0 and {data.samplerate:g} Hz."
        )
    if lpfreq is not None and not 0 < lpfreq <= resamplefs / 2:
        raise InputError(
            f"lpfreq={lpfreq!r} must not exceed half the new rate, {resamplefs / 2:g}."
        )
    shortest = int(data.lengths.min())
    order = min(shortest, 1000) if order is None else order
    chosen: dict[str, Any] = {"samplerate": data.samplerate, "new": float(resamplefs)}
    if method == "resample":
        chosen |= {"lpfreq": lpfreq, "order": order}
    elif lpfreq is not None:
        chosen["lowpass"] = choose_filter(
            "firws",
            filter_type="lp",
            freq=lpfreq,
            order=order,
            direction="twopass",
            window="hamming",
            samplerate=data.samplerate,
            shortest=shortest,
        )
    factor = resamplefs / data.samplerate
    analysis = Analysis(
        method,
        resample if method == "resample" else downsample,
        chosen,
        float(resamplefs),
        np.array([count_samples(int(n), data.samplerate, resamplefs) for n in data.lengths]),
        np.ceil(data.offsets * factor),
        beside="lengths",
        nanoseconds=10.0,
    )
    made = _analog(data, analysis, Means(parallel, chan_per_worker, to, memory, cluster, quiet))
    made.inherit(data, "resampledata", settings)
    return _place(made, to)


@takes_cfg
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
    select: Any = None,
    parallel: bool | None = None,
    chan_per_worker: int | None = None,
    to: Any = None,
    memory: Any = None,
    cluster: Any = None,
    quiet: bool = False,
) -> CrossSpectralData:
    """Return how pairs of channels belong together.

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

    The others are those of :func:`freqanalysis`.
    """
    settings = {key: value for key, value in locals().items() if key not in _NOT_SETTINGS}
    if method not in CONNECTIVITY:
        raise InputError(f"method={method!r} is unknown. Use one of {', '.join(CONNECTIVITY)}.")
    data = _choose(data, select, (AnalogData, SpectralData))
    means = Means(parallel, None, to, memory, cluster, quiet)
    if keeptrials and method not in ("csd", "corr"):
        raise InputError(f"keeptrials=True: method={method!r} is made of averages over trials.")
    if method != "corr" and len(data.trials) < 2:
        raise InputError(f"method={method!r} compares trials, but there is only one.")
    if method == "corr":
        made = _correlate(data, keeptrials, polyremoval, means)
    else:
        if isinstance(data, SpectralData):
            work = _use_spectra(data)
        else:
            check_polyremoval(polyremoval)
            wanted = (foi, foilim, pad, tapsmofrq, nTaper, taper, taper_opt)
            work = _make_spectra(data, method, polyremoval, *wanted)
        made = _connect(data, work, method, keeptrials, output, means)
    if channelcmb is not None:
        senders, receivers = (pick(part, data.channel, "channelcmb") for part in channelcmb)
        made = _pick_pairs(made, senders, receivers)
    made.inherit(data, "connectivityanalysis", settings)
    return made


@takes_cfg
def timelockanalysis(
    data: AnalogData,
    latency: Any = "maxperiod",
    covariance: bool = False,
    ddof: int | None = None,
    trials: Any = "all",
    keeptrials: bool = False,
    *,
    select: Any = None,
    parallel: bool | None = None,
    chan_per_worker: int | None = None,
    memory: Any = None,
    cluster: Any = None,
    quiet: bool = False,
) -> TimeLockData:
    """Return average and variance over trials, and the covariance of channels.

    Parameters
    ----------
    latency
        The window in seconds, or a word: see ``selectdata``. Trials that do not cover
        it are left out.
    covariance
        Whether to compute ``cov``; with ``keeptrials`` for each trial.
    ddof
        What is subtracted from the number of samples in a covariance; by default 1.
    trials
        Numbers of trials.

    Examples
    --------
    >>> from barrow import ephys
    >>> noise = ephys.synthdata.white_noise(nTrials=4, nChannels=2, nSamples=500, seed=1)
    >>> ephys.timelockanalysis(noise, latency=[0, 0.1]).avg.shape
    (101, 2)
    """
    settings = {key: value for key, value in locals().items() if key not in _NOT_SETTINGS}
    data = _choose(data, select, AnalogData).selectdata(trials=trials, latency=latency)
    _one_length(data.lengths, "timelockanalysis")
    means = Means(parallel, None, None, memory, cluster, quiet)
    wants_sum = covariance and not keeptrials
    analysis = Analysis(
        "timelock",
        Moments.of,
        {"covariance": wants_sum, "ddof": ddof},
        data.samplerate,
        data.lengths,
        data.offsets,
        nanoseconds=10.0,
    )
    found: Moments = add_up(data, analysis, Moments.of, means)
    made = object.__new__(TimeLockData)
    made.__dict__.update(data._view().__dict__)
    made.avg = found.average().astype(np.float32)
    made.var = found.variance().astype(np.float32)
    made.cov = None
    if found.covariance is not None:
        made.cov = found.covariance.mean().astype(np.float32)
    elif covariance:
        each = Analysis("covariance", covariances, {"ddof": ddof}, 1.0, data.lengths, data.offsets)
        made.cov = np.asarray(compute(data, each, means), np.float32)
    made.inherit(data, "timelockanalysis", settings)
    return made


@takes_cfg
def selectdata(data: TrialData, **selection: Any) -> TrialData:
    """Return a view of some trials, channels, times or frequencies.

    The arguments are those of :meth:`TrialData.selectdata`.
    """
    return data.selectdata(**selection)


def show(data: TrialData, squeeze: bool = True, **selection: Any) -> Any:
    """Return a selection as an array; a list of arrays for several trials."""
    return data.show(squeeze, **selection)


def singlepanelplot(data: TrialData, **selection: Any) -> Any:
    """Draw a selection in one panel; return figure and axes."""
    return data.singlepanelplot(**selection)


def multipanelplot(data: TrialData, **selection: Any) -> Any:
    """Draw each channel in a panel of its own; return figure and axes."""
    return data.multipanelplot(**selection)


# -- what the calls share

_NOT_SETTINGS = ("data", "to", "memory", "cluster", "quiet")


def _choose(data: Any, select: Any, kinds: Any) -> Any:
    if not isinstance(data, kinds):
        names = kinds if isinstance(kinds, tuple) else (kinds,)
        wanted = " or ".join(kind.__name__ for kind in names)
        raise InputError(
            f"data must be {wanted}, not {type(data).__name__}. Make one of an array with "
            "barrow.ephys.AnalogData(array, samplerate=...)."
        )
    if select is None or (isinstance(select, str) and select == "all"):
        return data
    return data.selectdata(**select)


def _describe(data: TrialData) -> Trialing:
    if not len(data.trials):
        raise InputError("There are no trials in the data.")
    return Trialing(data.samplerate, data.lengths, data.offsets)


def _one_length(lengths: np.ndarray, what: str) -> np.ndarray:
    if (lengths != lengths[0]).any():
        raise InputError(
            f"{what} needs trials of one length, but they have {lengths.min()} to {lengths.max()} "
            "samples. Cut them first: data.selectdata(latency='minperiod')."
        )
    return lengths[:1]


def _wrap(kind: Any, values: Any, samplerate: float, **described: Any) -> Any:
    """Return an object of an answer, which is in memory or in a store."""
    made = kind(values, samplerate, **described)
    # A store without a place of its own goes with the array that barrow returned.
    made._kept = values
    return made


def _place(made: Kind, to: Any) -> Kind:
    """Let a store say what its values mean, so that it can be loaded."""
    if to is not None:
        describe_store(made, Path(os.fspath(to)))
    return made


def _count_nan(total: Total, count: int) -> dict[str, Any]:
    missing = count - int(np.min(total.counts))
    return report_nan({}, np.zeros(0, bool)) | {"left_out": missing} if missing else {}


def _analog(data: AnalogData, analysis: Analysis, means: Means) -> AnalogData:
    values = compute(data, analysis, means)
    made: AnalogData = _wrap(
        AnalogData,
        values,
        analysis.samplerate,
        lengths=analysis.lengths,
        offsets=analysis.offsets,
        channel=data.channel,
    )
    made._info_columns = data.trialinfo
    if isinstance(values, np.ndarray):
        made.info = report_nan(made.info, _find_nan(values, analysis.lengths))
    return made


def _find_nan(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return which trials have NaN within their own length."""
    found = np.zeros(len(values), bool)
    for number, trial in enumerate(values):
        # A sum is NaN if any of its parts is, and needs no array of its own.
        found[number] = np.isnan(trial[: lengths[number]].sum())
    return found


def _use_spectra(data: SpectralData) -> Analysis:
    if data.dtype.kind != "c":
        raise InputError(
            f"The spectra are {data.dtype}. Connectivity needs complex ones: "
            "freqanalysis(..., output='fourier')."
        )
    lengths = _one_length(data.lengths, "connectivityanalysis")
    labels = {"freq": data.freq}
    return Analysis(
        "spectra", connecting.multiply_channels, {}, data.samplerate, lengths, data.offsets, labels
    )


def _make_spectra(
    data: AnalogData,
    method: str,
    polyremoval: int | None,
    foi: Any,
    foilim: Any,
    pad: Any,
    tapsmofrq: float | None,
    n_tapers: int | None,
    taper: str | None,
    taper_opt: Any,
) -> Analysis:
    given = _describe(data)
    wanted = choose_foi(foi, foilim, data.samplerate)
    if method == "granger" and wanted != (None, None):
        raise InputError("method='granger' needs all frequencies: leave out foi= and foilim=.")
    padded = choose_padding(pad, given.lengths, data.samplerate)
    freqs = np.fft.rfftfreq(padded, 1 / data.samplerate)
    bins = match_bins(freqs, *wanted)
    chosen = choose_taper(
        taper,
        taper_opt=taper_opt,
        tapsmofrq=tapsmofrq,
        n_tapers=n_tapers,
        samplerate=data.samplerate,
        length=float(given.lengths.mean()),
    )
    settings = {
        "taper": chosen,
        "padded": padded,
        "bins": as_slice(bins),
        "polyremoval": polyremoval,
        "demean_taper": method == "granger",
    }
    return Analysis(
        "cross spectra",
        connecting.cross_spectra,
        settings,
        data.samplerate,
        np.ones(1, int),
        data.offsets,
        {"freq": freqs[bins]},
        beside="lengths",
    )


def _connect(
    data: Any, work: Analysis, method: str, keeptrials: bool, output: str, means: Means
) -> CrossSpectralData:
    is_spectral = isinstance(data, SpectralData)
    info: dict[str, Any] = {}
    offsets = work.offsets[:1] if is_spectral else np.zeros(1)
    if keeptrials:
        values: Any = compute(data, work, means)
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
            values, info = _granger(csd)
    made: CrossSpectralData = _wrap(
        CrossSpectralData,
        values,
        data.samplerate,
        offsets=offsets,
        channel_i=data.channel,
        channel_j=data.channel,
        **work.labels,
    )
    made.info |= info
    return made


def _granger(csd: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
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
    data: Any, keeptrials: bool, polyremoval: int | None, means: Means
) -> CrossSpectralData:
    if not isinstance(data, AnalogData):
        raise InputError("method='corr' needs a recording, not spectra.")
    length = int(_one_length(data.lengths, "method='corr'")[0])
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
    made: CrossSpectralData = _wrap(
        CrossSpectralData,
        values,
        data.samplerate,
        freq=[0.0],
        channel_i=data.channel,
        channel_j=data.channel,
    )
    return made


def _pick_pairs(made: CrossSpectralData, senders: Any, receivers: Any) -> CrossSpectralData:
    everything = np.arange(len(made.channel_i))
    rows = everything if senders is None else senders
    columns = everything if receivers is None else receivers
    chosen: CrossSpectralData = made._like(
        made.cube()[..., rows, :][..., columns],
        channel_i=made.channel_i[rows],
        channel_j=made.channel_j[columns],
    )
    chosen._offsets, chosen.info = made._offsets, made.info
    return chosen
