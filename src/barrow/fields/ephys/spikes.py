"""Spikes in trials."""

from typing import Any, ClassVar

import numpy as np


class SpikeData:
    """Spikes: sample, channel and unit of each, in trials.

    Examples
    --------
    >>> spikes = SpikeData(np.array([[3, 0, 1], [12, 1, 0]]), 1000.0, [[0, 10, 0], [10, 20, 0]])
    >>> [len(trial) for trial in spikes.trials]
    [1, 1]
    """

    dimord: ClassVar[tuple[str, ...]] = ("sample", "channel", "unit")

    def __init__(self, data: np.ndarray, samplerate: float, trialdefinition: Any) -> None:
        self.data = np.asarray(data)
        self.samplerate = float(samplerate)
        self.trialdefinition = np.atleast_2d(np.array(trialdefinition, float))
        self.channel = np.unique(self.data[:, 1])
        self.unit = np.unique(self.data[:, 2])

    @property
    def trials(self) -> list[np.ndarray]:
        """The spikes of each trial."""
        samples = self.data[:, 0]
        bounds = np.searchsorted(samples, self.trialdefinition[:, :2])
        return [self.data[low:high] for low, high in bounds]

    @property
    def trialintervals(self) -> np.ndarray:
        """Time of the first and of the last sample of each trial."""
        starts, stops, offsets = self.trialdefinition[:, :3].T
        return np.column_stack([offsets, offsets + stops - starts - 1]) / self.samplerate

    def __repr__(self) -> str:
        return (
            f"SpikeData: {len(self.data)} spikes in {len(self.trialdefinition)} trials, "
            f"{len(self.channel)} channels, {len(self.unit)} units"
        )
