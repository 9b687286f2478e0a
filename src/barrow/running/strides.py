"""Compute a block in strides: read once, then walk what was read in smaller blocks.

Storage is read best in large blocks, while many functions are fastest on blocks
that fit a cache. In memory at once: the blocks that were read, the answer, and what
the function needs for one stride.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from barrow.model.applied import leaf_ranges, leaves, rebind
from barrow.model.grid import Grid
from barrow.model.source import Reader, Source
from barrow.shared import Ranges


def read_in_strides(target: Source, ranges: Ranges, strides: Mapping[str, int]) -> np.ndarray:
    """Return a block of the target, computed stride by stride.

    Examples
    --------
    >>> import barrow
    >>> source = barrow.open(np.arange(7), dims=("x",))
    >>> read_in_strides(source, ((1, 7),), {"x": 4})
    array([1, 2, 3, 4, 5, 6])
    """
    parts = list(split_block(target, ranges, strides))
    if len(parts) == 1:
        return target.read(ranges)
    pairs = zip(leaves(target), leaf_ranges(target, ranges), strict=True)
    windows = [Window(leaf.read(block), block) for leaf, block in pairs]
    inner = rebind(target, iter(windows))
    answer = np.empty([stop - start for start, stop in ranges], target.dtype)
    for place, part in parts:
        answer[_slices(part)] = inner.read(place)
    return answer


def read_in_parts(target: Source, ranges: Ranges, parts: Mapping[str, int]) -> np.ndarray:
    """Return a block of the target, each part of it read and computed for itself.

    In memory at once: the answer, and what one part needs. What parts share is read
    more than once: this is for blocks that did not fit otherwise.
    """
    answer = np.empty([stop - start for start, stop in ranges], target.dtype)
    for place, part in split_block(target, ranges, parts):
        answer[_slices(part)] = target.read(place)
    return answer


def split_block(
    target: Source, ranges: Ranges, parts: Mapping[str, int]
) -> Iterator[tuple[Ranges, Ranges]]:
    """Yield the parts of a block: where each lies in the target, and in the block."""
    shape = [stop - start for start, stop in ranges]
    for part in Grid(dict(zip(target.dims, shape, strict=True)), parts):
        place = tuple(
            (low + start, low + stop) for (start, stop), (low, _) in zip(part, ranges, strict=True)
        )
        yield place, part


@dataclass(frozen=True, eq=False)
class Window(Reader):
    """Read parts of a block that is in memory; nobody can change the block itself.

    A function sees what it would see without strides: memory of its own if the block
    was read for it, a read-only view if the block belongs to the user.
    """

    array: np.ndarray
    block: Ranges
    """Where the array lies in its source."""

    def __call__(self, ranges: Ranges) -> np.ndarray:
        inside = tuple(
            (start - low, stop - low)
            for (start, stop), (low, _) in zip(ranges, self.block, strict=True)
        )
        view = self.array[_slices(inside)]
        # Strides with a halo overlap, so what one of them writes must not reach the next.
        return view.copy() if self.array.flags.writeable else view


def _slices(ranges: Ranges) -> tuple[slice, ...]:
    return tuple(slice(start, stop) for start, stop in ranges)
