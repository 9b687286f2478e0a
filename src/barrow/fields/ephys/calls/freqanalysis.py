"""Spectra of trials and channels."""

from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.analysis import Analysis, Trialing, one_length
from barrow.fields.ephys.calls.calling import analysis_call
from barrow.fields.ephys.computing import Averaged, Means, add_up, compute, find_nan, report_nan
from barrow.fields.ephys.kinds import AnalogData, SpectralData
from barrow.fields.ephys.requests import Request
from barrow.fields.ephys.spectra import choose_mtmfft, choose_sliding
from barrow.fields.ephys.tapers import Tapering
from barrow.fields.ephys.transforms import (
    SuperletSet,
    choose_superlet_transform,
    choose_wavelet_transform,
)
from barrow.fields.ephys.wavelets import choose_wavelet

METHODS = ("mtmfft", "mtmconvol", "welch", "wavelet", "superlet")


@analysis_call(AnalogData)
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
    means: Means,
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
    trials = Trialing(data.samplerate, data.lengths, data.offsets)
    asked = Request.check(trials, foi, foilim, output, polyremoval)
    tapering = Tapering(taper, taper_opt, tapsmofrq, nTaper)
    if method == "mtmfft":
        analysis = choose_mtmfft(
            asked,
            tapering,
            keeptapers=keeptapers,
            pad=pad,
            demean_taper=demean_taper,
            ft_compat=ft_compat,
        )
    elif method in ("mtmconvol", "welch"):
        analysis = choose_sliding(
            asked, tapering, method=method, keeptapers=keeptapers, toi=toi, t_ftimwin=t_ftimwin
        )
    elif method == "wavelet":
        analysis = choose_wavelet_transform(asked, choose_wavelet(wavelet, width, order), toi)
    elif method == "superlet":
        chosen = SuperletSet(order_max, order_min, c_1, adaptive)
        analysis = choose_superlet_transform(asked, chosen, toi)
    else:
        raise InputError(f"method={method!r} is unknown. Use one of {', '.join(METHODS)}.")
    return _each(data, analysis, means) if keeptrials else _average(data, analysis, means)


def _each(data: AnalogData, analysis: Analysis, means: Means) -> SpectralData:
    values = compute(data, analysis, means)
    made = SpectralData(
        values,
        analysis.samplerate,
        lengths=analysis.lengths,
        offsets=analysis.offsets,
        channel=data.channel,
        **analysis.labels,
    )
    made.info = report_nan(find_nan(values, analysis.lengths))
    return made


def _average(data: AnalogData, analysis: Analysis, means: Means) -> SpectralData:
    lengths = one_length(analysis.lengths, "keeptrials=False")
    total = add_up(data, analysis, Averaged(analysis.func), means)
    dtype = np.complex64 if np.iscomplexobj(total.values) else np.float32
    made = SpectralData(
        total.mean().astype(dtype)[None],
        analysis.samplerate,
        lengths=lengths,
        offsets=analysis.offsets.mean(keepdims=True),
        channel=data.channel,
        **analysis.labels,
    )
    left_out = len(data.trials) - int(np.min(total.counts))
    if left_out:
        made.info = {"nan_trials": [], "left_out": left_out}
    return made
