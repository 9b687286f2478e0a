"""Averages over trials that come in parts: parts add up, and NaN is left out."""

from dataclasses import dataclass
from typing import Any

import numpy as np

SOME_TRIALS = 64


@dataclass(frozen=True)
class Total:
    """A sum over trials, and how many trials are in it.

    Examples
    --------
    >>> parts = Total.of(np.array([[1.0, np.nan], [3.0, 5.0]])) + Total.of(np.array([[2.0, 7.0]]))
    >>> parts.mean().tolist()
    [2.0, 6.0]
    """

    values: np.ndarray
    counts: Any
    """A number, or an array where some trials had NaN."""

    @classmethod
    def of(cls, trials: np.ndarray) -> "Total":
        """Return the total over the first axis."""
        wide = np.complex128 if trials.dtype.kind == "c" else np.float64
        values = _sum(trials).astype(wide)
        if not np.isnan(values).any():
            return cls(values, len(trials))
        holes = np.isnan(trials)
        return cls(
            np.where(holes, 0, trials).sum(axis=0, dtype=wide), len(trials) - holes.sum(axis=0)
        )

    def __add__(self, other: "Total") -> "Total":
        return Total(self.values + other.values, self.counts + other.counts)

    def mean(self) -> np.ndarray:
        """Return the mean; NaN where there was no trial."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.values / self.counts)


def _sum(trials: np.ndarray) -> np.ndarray:
    """Return the sum over trials; some at a time in single precision, which is quick."""
    if trials.dtype not in (np.float32, np.complex64) or not trials.flags.c_contiguous:
        return np.asarray(trials.sum(axis=0))
    flat = trials.reshape(len(trials), -1).view(np.float32)
    total = np.zeros(flat.shape[1])
    for first in range(0, len(flat), SOME_TRIALS):
        part = flat[first : first + SOME_TRIALS]
        total += np.ones(len(part), np.float32) @ part
    wide = np.complex128 if trials.dtype.kind == "c" else np.float64
    return total.view(wide).reshape(trials.shape[1:])


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared deviations over trials, and the sum of covariances.

    Parts are joined as by Chan et al.: no difference of two large numbers is taken.

    Examples
    --------
    >>> trials = np.arange(6.0)[:, None, None]
    >>> parts = Moments.of(trials[:2]) + Moments.of(trials[2:])
    >>> float(parts.variance()[0, 0]) == float(trials.var())
    True
    """

    counts: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    covariance: Total | None = None

    @classmethod
    def of(cls, trials: np.ndarray, covariance: bool = False, ddof: int | None = None) -> "Moments":
        """Return the moments over the trials of a block: trial × time × channel."""
        wide = np.asarray(trials, np.float64)
        counts = (~np.isnan(wide)).sum(axis=0)
        filled = np.where(np.isnan(wide), 0, wide)
        mean = filled.sum(axis=0) / np.maximum(counts, 1)
        squares = np.square(np.where(np.isnan(wide), 0, wide - mean)).sum(axis=0)
        between = Total.of(covariances(trials, ddof)) if covariance else None
        return cls(counts, mean, squares, between)

    def __add__(self, other: "Moments") -> "Moments":
        counts = self.counts + other.counts
        share = other.counts / np.maximum(counts, 1)
        step = other.mean - self.mean
        between = self.covariance
        if between is not None and other.covariance is not None:
            between = between + other.covariance
        return Moments(
            counts,
            self.mean + step * share,
            self.squares + other.squares + step**2 * share * self.counts,
            between,
        )

    def variance(self) -> np.ndarray:
        """Return the variance over trials, divided by their number."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.squares / self.counts)

    def average(self) -> np.ndarray:
        """Return the mean over trials; NaN where there was none."""
        return np.where(self.counts, self.mean, np.nan)


def covariances(trials: np.ndarray, ddof: int | None = None) -> np.ndarray:
    """Return the covariance between channels of each trial: trial × channel × channel.

    Examples
    --------
    >>> covariances(np.array([[[0.0, 0.0], [2.0, 4.0]]]))[0].tolist()
    [[2.0, 4.0], [4.0, 8.0]]
    """
    wide = np.asarray(trials, np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    freedom = trials.shape[1] - (1 if ddof is None else ddof)
    return np.asarray(centred.transpose(0, 2, 1) @ centred / freedom)
