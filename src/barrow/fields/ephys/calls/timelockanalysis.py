"""Averages over trials."""

from typing import Any

from barrow.fields.ephys.analysis import Analysis, one_length
from barrow.fields.ephys.averages import Moments, covariances
from barrow.fields.ephys.calls.calling import analysis_call
from barrow.fields.ephys.computing import Means, add_up, compute
from barrow.fields.ephys.kinds import AnalogData, TimeLockData


@analysis_call(AnalogData)
def timelockanalysis(
    data: AnalogData,
    latency: Any = "maxperiod",
    covariance: bool = False,
    ddof: int | None = None,
    trials: Any = "all",
    keeptrials: bool = False,
    *,
    means: Means,
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
    data = data.selectdata(trials=trials, latency=latency)
    one_length(data.lengths, "timelockanalysis")
    analysis = Analysis(
        "timelock",
        Moments.of,
        {"covariance": covariance and not keeptrials, "ddof": ddof},
        data.samplerate,
        data.lengths,
        data.offsets,
        nanoseconds=10.0,
    )
    found: Moments = add_up(data, analysis, Moments.of, means)
    cov = None if found.covariance is None else found.covariance.mean()
    if covariance and keeptrials:
        each = Analysis("covariance", covariances, {"ddof": ddof}, 1.0, data.lengths, data.offsets)
        cov = compute(data, each, means)
    return TimeLockData.of(data, found.average(), found.variance(), cov)
