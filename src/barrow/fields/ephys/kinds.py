"""The kinds of data: recordings, spectra, cross spectra, averages."""

from typing import Self

import numpy as np

from barrow.fields.ephys.trial_data import TrialData


class AnalogData(TrialData):
    """A recording: time × channel in each trial.

    Examples
    --------
    >>> rec = AnalogData(np.zeros((3, 500, 2), "f4"), samplerate=500, channel=["a", "b"])
    >>> rec
    AnalogData: 3 trials of 500 samples at 500 Hz, channel 2, float32
    >>> rec.data.shape, rec.trials[0].shape, rec.selectdata(channel=["b"]).trials[1].shape
    ((1500, 2), (500, 2), (500, 1))
    """

    dimord = ("time", "channel")
    channel: np.ndarray


class SpectralData(TrialData):
    """Spectra: time × taper × frequency × channel in each trial."""

    dimord = ("time", "taper", "freq", "channel")
    taper: np.ndarray
    freq: np.ndarray
    channel: np.ndarray


class CrossSpectralData(TrialData):
    """What pairs of channels share: time × frequency × channel × channel in each trial."""

    dimord = ("time", "freq", "channel_i", "channel_j")
    freq: np.ndarray
    channel_i: np.ndarray
    channel_j: np.ndarray


class TimeLockData(TrialData):
    """Trials cut to one window, with their average, variance and covariance."""

    dimord = ("time", "channel")
    channel: np.ndarray
    avg: np.ndarray
    """Mean over trials: time × channel."""
    var: np.ndarray
    """Variance over trials: time × channel."""
    cov: np.ndarray | None = None
    """Covariance of channels, averaged over trials or for each."""

    @classmethod
    def of(cls, data: AnalogData, avg: np.ndarray, var: np.ndarray, cov: np.ndarray | None) -> Self:
        """Return a view of trials with what was computed of them, in single precision."""
        made = object.__new__(cls)
        made.__dict__.update(data.view().__dict__)
        made.avg, made.var = avg.astype(np.float32), var.astype(np.float32)
        made.cov = None if cov is None else np.asarray(cov, np.float32)
        return made
