"""Choose the sizes at which a chain of steps is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barrow.model.applied import leaves
from barrow.model.reading import block_at, count_items
from barrow.model.source import Source
from barrow.shared import Ranges

# Bytes read by the tasks that are timed: what fits the caches, and what does not.
SIZES = (2**18, 2**21, 2**24, 2**26)
PLACES = (0.5, 0.15, 0.85)


@dataclass(frozen=True)
class Sample:
    """One size at which the cost is measured."""

    items: int
    blocks: tuple[Ranges, ...]
    """The same size at several places of the data."""


def choose_samples(target: Source, rungs: Sequence[Mapping[str, int]]) -> list[Sample]:
    """Return the sizes to measure: the rungs nearest to a few round sizes."""
    itemsize = max(leaf.dtype.itemsize for leaf in leaves(target)) or 1
    sizes = [count_items(target, block_at(target, rung, 0.5)) for rung in rungs]
    chosen: dict[int, Mapping[str, int]] = {}
    for wanted in SIZES:
        nearest = min(range(len(rungs)), key=lambda i: abs(sizes[i] * itemsize - wanted))
        chosen[sizes[nearest]] = rungs[nearest]
    return [
        Sample(items, tuple(dict.fromkeys(block_at(target, rung, place) for place in PLACES)))
        for items, rung in sorted(chosen.items())
    ]
