"""Filters, and what else is done to trials before their analysis."""

from typing import Any

from barrow.errors import InputError
from barrow.fields.ephys.analysis import Analysis, Trialing, check_polyremoval
from barrow.fields.ephys.calls.calling import analysis_call
from barrow.fields.ephys.computing import Means, compute_analog
from barrow.fields.ephys.filters import choose_filter
from barrow.fields.ephys.kinds import AnalogData
from barrow.fields.ephys.preparing import HILBERT, preprocess


@analysis_call(AnalogData)
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
    means: Means,
) -> AnalogData:
    """Return filtered trials.

    Z-score comes first, then detrending and the filter, then rectification or the
    Hilbert transform; all in one pass over the data.

    Arguments that are not listed here are those of :func:`freqanalysis`.

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

    Examples
    --------
    >>> from barrow import ephys
    >>> noise = ephys.synthdata.white_noise(nTrials=4, nChannels=2, nSamples=500, seed=1)
    >>> ephys.preprocessing(noise, filter_type="bp", freq=[20, 40])
    AnalogData: 4 trials of 500 samples at 1000 Hz, channel 2, float32
    """
    check_polyremoval(polyremoval)
    if hilbert and hilbert not in HILBERT:
        raise InputError(f"hilbert={hilbert!r} is unknown. Use one of {', '.join(HILBERT)}.")
    if rectify and hilbert:
        raise InputError("rectify= and hilbert= exclude each other. Leave one out.")
    if filter_class is None and polyremoval is None and not zscore and not rectify and not hilbert:
        raise InputError("There is nothing to do: choose a filter, polyremoval=, zscore= or so.")
    trials = Trialing(data.samplerate, data.lengths, data.offsets)
    chosen = None
    if filter_class is not None:
        chosen = choose_filter(
            filter_class,
            filter_type=filter_type,
            freq=freq,
            order=order,
            direction=direction,
            window=window,
            samplerate=trials.samplerate,
            shortest=trials.shortest,
        ).compiled_for(int(trials.lengths.sum()) * len(data.channel))
    settings = {
        "chosen": chosen,
        "polyremoval": polyremoval,
        "zscore": bool(zscore),
        "rectify": bool(rectify),
        "hilbert": hilbert or None,
    }
    analysis = Analysis(
        "preprocessing",
        preprocess,
        settings,
        trials.samplerate,
        trials.lengths,
        trials.offsets,
        beside="lengths",
        nanoseconds=10.0,
    )
    return compute_analog(data, analysis, means)
