"""Fit lines through measurements. Numbers in, numbers out."""

from collections.abc import Sequence
from dataclasses import dataclass

from barrow.model.cost import MEMORY_MARGIN, MEMORY_SLACK_BYTES


@dataclass(frozen=True)
class Peak:
    """Peak = base + per item × items, and how far above it the truth may lie."""

    base: float
    per_item: float
    margin: float
    """Share by which a large task may lie above the line."""
    slack_bytes: float
    """Bytes by which any task may, however small."""


def fit_peak(items: Sequence[int], peaks: Sequence[float]) -> Peak:
    """Return the line through the peaks of tasks of several sizes.

    Margin and slack grow when the line fits badly.

    Examples
    --------
    >>> found = fit_peak([1000, 2000, 4000], [17_000, 33_000, 65_000])
    >>> round(found.base), round(found.per_item), found.margin
    (1000, 16, 0.05)
    """
    if len(items) == 1 or max(items) == min(items):
        return Peak(0.0, max(peaks) / max(items), 0.25, MEMORY_SLACK_BYTES)
    count = len(items)
    middle_x, middle_y = sum(items) / count, sum(peaks) / count
    spread = sum((x - middle_x) ** 2 for x in items)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in zip(items, peaks, strict=True)) / spread
    slope = max(slope, 0.0)
    base = max(0.0, middle_y - slope * middle_x)
    if slope == 0.0:
        slope = max(peaks) / max(items)
        base = 0.0
    # How far the line is off for large tasks grows with them; for small ones it is mostly
    # pages and buffers, and does not.
    large = [(x, y) for x, y in zip(items, peaks, strict=True) if 4 * x > max(items)]
    margin = max(MEMORY_MARGIN, 2 * max(y / (base + slope * x) - 1 for x, y in large))
    beyond = max(y - (base + slope * x) * (1 + margin) for x, y in zip(items, peaks, strict=True))
    return Peak(base, slope, margin, max(MEMORY_SLACK_BYTES, 1.5 * beyond))
