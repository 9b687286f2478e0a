"""Find the stored blocks that a range touches.

Integer arithmetic on boundaries, for blocks of any lengths: no Dask, no files.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from math import gcd
from typing import Any

from barrow.shared import Ranges


@dataclass(frozen=True)
class Overlap:
    """The part that one block has in a range."""

    index: tuple[int, ...]
    """Position of the block in the array of blocks."""
    shape: tuple[int, ...]
    """Lengths of the whole block."""
    inside: tuple[slice, ...]
    """The part, counted from the corner of the block."""
    outside: tuple[slice, ...]
    """The part, counted from the corner of the range."""

    @property
    def is_whole(self) -> bool:
        """Whether the part is the whole block."""
        return all(
            (part.start, part.stop) == (0, length)
            for part, length in zip(self.inside, self.shape, strict=True)
        )


@dataclass(frozen=True)
class Layout:
    """Boundaries of the blocks along each dimension, and the number of the first block.

    Examples
    --------
    >>> layout = Layout.of_chunks([(3, 3, 2)])
    >>> [(part.index, part.outside) for part in layout.overlaps(((2, 5),))]
    [((0,), (slice(0, 1, None),)), ((1,), (slice(1, 3, None),))]
    """

    bounds: tuple[tuple[int, ...], ...]
    first: tuple[int, ...]

    @classmethod
    def of_chunks(cls, chunks: Sequence[Sequence[int]]) -> "Layout":
        """Return the layout of blocks with these lengths along each dimension."""
        bounds = tuple(tuple(accumulate(map(int, sizes), initial=0)) for sizes in chunks)
        return cls(bounds, (0,) * len(bounds))

    def overlaps(self, ranges: Ranges) -> Iterator[Overlap]:
        """Return the blocks that the ranges touch, in storage order."""
        axes = [list(self._along(axis, start, stop)) for axis, (start, stop) in enumerate(ranges)]
        for parts in product(*axes):
            yield Overlap(
                tuple(part[0] for part in parts),
                tuple(part[1] for part in parts),
                tuple(part[2] for part in parts),
                tuple(part[3] for part in parts),
            )

    def cropped(self, ranges: Ranges) -> "Layout":
        """Return the layout of just the blocks that the ranges touch."""
        bounds, first = [], []
        for edges, offset, (start, stop) in zip(self.bounds, self.first, ranges, strict=True):
            low, high = _touched(edges, start, stop)
            bounds.append(edges[low : high + 1])
            first.append(offset + low)
        return Layout(tuple(bounds), tuple(first))

    def _along(self, axis: int, start: int, stop: int) -> Iterator[tuple[int, int, slice, slice]]:
        edges = self.bounds[axis]
        for number in range(*_touched(edges, start, stop)):
            low, high = edges[number], edges[number + 1]
            cut = max(low, start), min(high, stop)
            if cut[0] < cut[1]:
                inside = slice(cut[0] - low, cut[1] - low)
                outside = slice(cut[0] - start, cut[1] - start)
                yield self.first[axis] + number, high - low, inside, outside


def _touched(edges: Sequence[int], start: int, stop: int) -> tuple[int, int]:
    low = max(bisect_right(edges, start) - 1, 0)
    return low, max(bisect_left(edges, stop), low)


def to_index(ranges: Ranges) -> Any:
    """Return ranges as an index; what it gives is an array even without dimensions.

    Examples
    --------
    >>> to_index(((0, 1), (2, 5)))
    (slice(0, 1, None), slice(2, 5, None), Ellipsis)
    """
    return (*(slice(start, stop) for start, stop in ranges), ...)


def choose_grain(sizes: Sequence[int]) -> int:
    """Return the one length that suits blocks of these lengths best.

    Blocks of one length, the last one shorter, have that length. Others have the
    largest length whose multiples meet every boundary, so that no block is read
    twice; if that would cut the blocks into more than four, the length that
    covers most of the data, and some blocks are then read by two chunks.

    Examples
    --------
    >>> choose_grain((100, 100, 30)), choose_grain((100, 50, 100)), choose_grain((37, 100, 100))
    (100, 50, 100)
    """
    sizes = [int(size) for size in sizes if size]
    if not sizes:
        return 1
    if len(set(sizes[:-1])) <= 1 and sizes[-1] <= sizes[0]:
        return sizes[0]
    common = gcd(*list(accumulate(sizes))[:-1])
    if 4 * common >= max(sizes):
        return common
    covered: Counter[int] = Counter()
    for size in sizes:
        covered[size] += size
    return max(covered, key=lambda size: (covered[size], size))
