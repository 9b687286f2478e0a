"""Numbers of a whole image, channel by channel: counted block by block, exact for whole numbers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas

from barrow.fields.spatial.means import Means
from barrow.fields.spatial.raster import channels_of, open_raster
from barrow.model.source import Source

BINS = 4096
# Whole numbers of so few bits are counted one by one.
COUNTED_BITS = 16


@dataclass(frozen=True)
class Totals:
    """Count, least, most, sum and sum of squares of each channel."""

    count: np.ndarray
    least: np.ndarray
    most: np.ndarray
    total: np.ndarray
    squares: np.ndarray

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            self.count + other.count,
            np.minimum(self.least, other.least),
            np.maximum(self.most, other.most),
            self.total + other.total,
            self.squares + other.squares,
        )


def stats(
    data: Any, *, memory: Any = None, cluster: Any = None, quiet: bool = False
) -> pandas.DataFrame:
    """Return least, most, mean and standard deviation of each channel of an image.

    Examples
    --------
    >>> stats(np.arange(12.0).reshape(1, 3, 4), quiet=True)["mean"].tolist()
    [5.5]
    """
    source = open_raster(data).source
    means = Means(memory=memory, cluster=cluster, quiet=quiet)
    found = total(source, means)
    mean = found.total / found.count
    spread = np.sqrt(np.maximum(found.squares / found.count - mean**2, 0))
    names = channels_of(source) if "c" in source.lengths else [source.name]
    columns = {"min": found.least, "max": found.most, "mean": mean, "std": spread}
    return pandas.DataFrame(columns, index=pandas.Index(names, name="c"))


def total(source: Source, means: Means) -> Totals:
    """Return the totals of each channel."""
    has_channels = "c" in source.lengths
    found: Totals = means.reduce(
        _TotalBlock(has_channels),
        replace(source, labels=None),
        whole=["c"] if has_channels else [],
        name="totals",
    )
    return found


def histogram(source: Source, means: Means) -> tuple[np.ndarray, np.ndarray]:
    """Return how often values occur in a source, and the edges between the bins."""
    bits = 8 * source.dtype.itemsize
    if source.dtype.kind == "b" or (source.dtype.kind == "u" and bits <= COUNTED_BITS):
        low, high, bins = -0.5, 2.0**bits - 0.5, 2**bits
    else:
        found = total(source, means)
        low, high, bins = float(found.least.min()), float(found.most.max()), BINS
        high = high if high > low else low + 1
    edges = np.linspace(low, high, bins + 1)
    counts = means.reduce(_CountBlock(low, high, bins), replace(source, labels=None), name="count")
    return counts, edges


def otsu(counts: np.ndarray, edges: np.ndarray) -> float:
    """Return the threshold that parts a histogram into two classes of least variance (Otsu).

    Examples
    --------
    >>> otsu(np.array([5, 5, 0, 0, 5, 5]), np.arange(7.0))
    3.0
    """
    centres = (edges[1:] + edges[:-1]) / 2
    below = np.cumsum(counts)[:-1].astype(float)
    above = counts.sum() - below
    sums = np.cumsum(counts * centres)
    valid = (below > 0) & (above > 0)
    if not valid.any():
        return float(edges[-1])
    below, above = np.maximum(below, 1), np.maximum(above, 1)
    apart = sums[:-1] / below - (sums[-1] - sums[:-1]) / above
    between = np.where(valid, below * above * apart**2, -1)
    # Bins that nothing falls into are all as good: the middle of them.
    best = np.flatnonzero(between == between.max())
    return float(edges[(best[0] + best[-1]) // 2 + 1])


@dataclass(frozen=True)
class _TotalBlock:
    has_channels: bool

    def __call__(self, block: np.ndarray) -> Totals:
        rows = block.reshape(block.shape[0] if self.has_channels else 1, -1)
        sums, squares = [], []
        for row in rows:
            values = row.astype(np.float64)
            sums.append(values.sum())
            squares.append(np.dot(values, values))
        count = np.full(len(rows), rows.shape[1], np.int64)
        return Totals(count, rows.min(axis=1), rows.max(axis=1), np.array(sums), np.array(squares))


@dataclass(frozen=True)
class _CountBlock:
    low: float
    high: float
    bins: int

    def __call__(self, block: np.ndarray) -> np.ndarray:
        if block.dtype.kind in "ub" and self.low == -0.5:
            return np.bincount(block.reshape(-1), minlength=self.bins)
        return np.histogram(block, self.bins, (self.low, self.high))[0]
