"""A curve: a quantity known at a few sizes, read off in between.

Points are pairs of items and value, smallest first, so that they can be saved
as they are.
"""

import math
from collections.abc import Sequence

Points = tuple[tuple[int, float], ...]


def seconds_at(points: Points, items: float) -> float:
    """Return the time of a task of this size, from the times of others.

    Between two points it follows the power law through both; beyond the last it
    grows in proportion; below the first a part is taken to be the price of any
    call, however small.

    Examples
    --------
    >>> points = ((1000, 0.001), (100_000, 0.05))
    >>> seconds_at(points, 1000), round(seconds_at(points, 10_000), 4), seconds_at(points, 200_000)
    (0.001, 0.0071, 0.1)
    """
    if not points or items <= 0:
        return 0.0
    first, last = points[0], points[-1]
    if items <= first[0]:
        base = _price_of_a_call(points)
        return base + (first[1] - base) * items / first[0]
    if items >= last[0]:
        return last[1] * items / last[0]
    (low, before), (high, after) = _around(points, items)
    share = math.log(items / low) / math.log(high / low)
    return math.exp((1 - share) * math.log(before) + share * math.log(after))


def level_at(points: Points, items: float) -> float:
    """Return a ratio that changes little with size: beyond both ends it stays as it is.

    Examples
    --------
    >>> level_at(((100, 2.0), (10_000, 1.0)), 1000), level_at(((100, 2.0), (10_000, 1.0)), 1e9)
    (1.5, 1.0)
    """
    if not points:
        return 1.0
    if items <= points[0][0]:
        return points[0][1]
    if items >= points[-1][0]:
        return points[-1][1]
    (low, before), (high, after) = _around(points, items)
    share = math.log(items / low) / math.log(high / low)
    return (1 - share) * before + share * after


def _around(points: Points, items: float) -> Sequence[tuple[int, float]]:
    above = next(index for index, (size, _) in enumerate(points) if items <= size)
    return points[above - 1 : above + 1]


def _price_of_a_call(points: Points) -> float:
    if len(points) < 2:
        return 0.0
    (low, before), (high, after) = points[:2]
    slope = (after - before) / (high - low)
    return min(before, max(0.0, before - slope * low))
