"""An analysis before it is run: an array function, its settings, and what its answer means."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from barrow.errors import InputError


@dataclass(frozen=True)
class Trialing:
    """What is known of trials before they are read."""

    samplerate: float
    lengths: np.ndarray
    offsets: np.ndarray

    def __post_init__(self) -> None:
        if not len(self.lengths):
            raise InputError("There are no trials in the data.")

    @property
    def shortest(self) -> int:
        """Samples of the shortest trial."""
        return int(self.lengths.min())

    @property
    def mean_length(self) -> float:
        """Samples of a trial, on average."""
        return float(self.lengths.mean())

    @property
    def is_alike(self) -> bool:
        """Whether all trials have the same times."""
        is_long = (self.lengths == self.lengths[0]).all()
        return bool(is_long and (self.offsets == self.offsets[0]).all())


@dataclass(frozen=True)
class Analysis:
    """An array function with its settings, and what its answer means."""

    name: str
    func: Callable[..., Any]
    settings: Mapping[str, Any]
    samplerate: float
    lengths: np.ndarray
    """Samples of each trial of the answer."""
    offsets: np.ndarray
    """Time of the first one, in samples."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    beside: str | None = None
    """What the function gets besides the trials where they differ: ``lengths`` of trials, or
    ``facts``, lengths and offsets."""
    nanoseconds: float = 20.0
    """What it takes for each byte of trials, roughly: decides only what is done without a plan."""


def check_polyremoval(order: Any) -> None:
    """Refuse any other polynomial than a mean or a line."""
    if order not in (None, 0, 1):
        raise InputError(f"polyremoval={order!r}: use 0 for the mean, 1 for a line, or None.")


def one_length(lengths: np.ndarray, what: str) -> np.ndarray:
    """Return the length that all trials share, or say how to cut them."""
    if (lengths != lengths[0]).any():
        raise InputError(
            f"{what} needs trials of one length, but they have {lengths.min()} to {lengths.max()} "
            "samples. Cut them first: data.selectdata(latency='minperiod')."
        )
    return lengths[:1]
