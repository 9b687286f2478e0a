"""Trials at another sample rate."""

from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.analysis import Analysis, Trialing
from barrow.fields.ephys.calls.calling import analysis_call
from barrow.fields.ephys.computing import Means, compute_analog
from barrow.fields.ephys.filters import choose_filter
from barrow.fields.ephys.kinds import AnalogData
from barrow.fields.ephys.resampling import count_samples, downsample, resample


@analysis_call(AnalogData)
def resampledata(
    data: AnalogData,
    resamplefs: float = 1.0,
    method: str = "resample",
    lpfreq: float | None = None,
    order: int | None = None,
    *,
    means: Means,
) -> AnalogData:
    """Return trials at a lower sample rate.

    Arguments that are not listed here are those of :func:`freqanalysis`.

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
    """
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
    trials = Trialing(data.samplerate, data.lengths, data.offsets)
    order = min(trials.shortest, 1000) if order is None else order
    settings: dict[str, Any] = {"samplerate": trials.samplerate, "new": float(resamplefs)}
    if method == "resample":
        settings |= {"lpfreq": lpfreq, "order": order}
    elif lpfreq is not None:
        settings["lowpass"] = choose_filter(
            "firws",
            filter_type="lp",
            freq=lpfreq,
            order=order,
            direction="twopass",
            window="hamming",
            samplerate=trials.samplerate,
            shortest=trials.shortest,
        )
    lengths = [count_samples(int(n), trials.samplerate, resamplefs) for n in trials.lengths]
    analysis = Analysis(
        method,
        resample if method == "resample" else downsample,
        settings,
        float(resamplefs),
        np.array(lengths),
        np.ceil(trials.offsets * resamplefs / trials.samplerate),
        beside="lengths",
        nanoseconds=10.0,
    )
    return compute_analog(data, analysis, means)
