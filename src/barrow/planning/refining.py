"""Correct a cost by what tasks really took. Numbers in, numbers out."""

import math
from dataclasses import dataclass, replace

from barrow.model.cost import Cost
from barrow.model.curve import Points, level_at

# Sizes that differ by less are the same point of a curve.
SAME_SIZE = 1.25


@dataclass(frozen=True)
class Measured:
    """The mean task of a run, or of a part of it."""

    items: int
    """Read by one call of the function."""
    calls: int
    """Of the function in one task: more than 1 when it walks its chunk in strides."""
    slowdown: float
    """How much longer it took, presumably, because others ran beside it."""
    compute_seconds: float
    read_seconds: float
    stored_bytes: int
    """What came from storage, where a chunk that is cut counts whole."""
    write_seconds: float
    written_bytes: int


def refine(cost: Cost, seen: Measured, weight: float = 0.5) -> Cost:
    """Return the cost with what was seen blended in, fully at its size and half at others.

    Examples
    --------
    >>> cost = Cost(points=((1000, 0.1), (100_000, 10.0)))
    >>> seen = Measured(items=100_000, calls=1, slowdown=2.0, compute_seconds=5.0,
    ...     read_seconds=0.0, stored_bytes=0, write_seconds=0.0, written_bytes=0)
    >>> refine(cost, seen, weight=1.0).seconds(100_000)
    2.5
    """
    slowdown = max(1e-3, seen.slowdown)
    seconds = seen.compute_seconds / max(1, seen.calls) / slowdown
    changes: dict[str, object] = {}
    if seconds > 0 and cost.is_measured:
        before = cost.seconds(seen.items)
        ratio = (seconds / before) ** weight
        # A busy machine or other data change all sizes alike: without this, those that did
        # not run would look better each time.
        others = tuple((items, value * math.sqrt(ratio)) for items, value in cost.points)
        changes["points"] = _put(others, seen.items, before * ratio)
    for name, spent, size in (
        ("read_seconds_per_byte", seen.read_seconds / slowdown, seen.stored_bytes),
        (
            "write_seconds_per_byte",
            max(0.0, seen.write_seconds / slowdown - cost.write_seconds_per_chunk),
            seen.written_bytes,
        ),
    ):
        if size:
            rate = spent / size
            changes[name] = (1 - weight) * getattr(cost, name) + weight * rate
    return replace(cost, **changes)  # type: ignore[arg-type]


def rescale(cost: Cost, ratios: Points) -> Cost:
    """Return the cost with its times corrected at some sizes, and in between and beyond.

    What was slower or faster than it should be at one size is taken to be so at
    others: the shape of the curve is what measuring it once has taught.

    Parameters
    ----------
    ratios
        Items, and how many times longer the function takes than the cost says.

    Examples
    --------
    >>> cost = Cost(points=((1000, 0.1), (100_000, 10.0)))
    >>> rescale(cost, ((1000, 0.5),)).points
    ((1000, 0.05), (100000, 5.0))
    """
    points: Points = tuple((n, seconds * level_at(ratios, n)) for n, seconds in cost.points)
    for items, ratio in ratios:
        points = _put(points, items, cost.seconds(items) * ratio)
    return replace(cost, points=points)


def _put(points: Points, items: int, value: float) -> Points:
    """Return the points with one more, in place of those of about the same size."""
    others = [p for p in points if not 1 / SAME_SIZE < p[0] / items < SAME_SIZE]
    return tuple(sorted([*others, (items, value)]))
