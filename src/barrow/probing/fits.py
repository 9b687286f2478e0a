"""Fit lines through measurements. Numbers in, numbers out."""

from collections.abc import Sequence

from barrow.model.cost import MEMORY_MARGIN


def fit_peak(items: Sequence[int], peaks: Sequence[float]) -> tuple[float, float, float]:
    """Return base, factor and margin of peak = base + factor × items.

    The margin is the share by which a measurement may lie above the line; it
    grows when the line fits badly.

    Examples
    --------
    >>> base, factor, margin = fit_peak([1000, 2000, 4000], [17_000, 33_000, 65_000])
    >>> round(base), round(factor), margin
    (1000, 16, 0.05)
    """
    if len(items) == 1 or max(items) == min(items):
        return 0.0, max(peaks) / max(items), 0.25
    count = len(items)
    middle_x, middle_y = sum(items) / count, sum(peaks) / count
    spread = sum((x - middle_x) ** 2 for x in items)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in zip(items, peaks, strict=True)) / spread
    slope = max(slope, 0.0)
    base = max(0.0, middle_y - slope * middle_x)
    if slope == 0.0:
        slope = max(peaks) / max(items)
        base = 0.0
    # What counts is how far the line is off at the largest task: small ones are mostly pages.
    worst = max(
        y / (base + slope * x) - 1 for x, y in zip(items, peaks, strict=True) if 4 * x > max(items)
    )
    return base, slope, max(MEMORY_MARGIN, 2 * worst)
