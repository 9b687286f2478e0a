"""A grid: how data are cut into chunks, without a list of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from barrow.errors import InputError
from barrow.shared import Ranges


@dataclass(frozen=True)
class Grid:
    """Chunks of equal length along each dimension, the last one shorter.

    The chunks have numbers, in storage order; ranges are computed from a number,
    so ten million chunks take no more memory than ten.

    Examples
    --------
    >>> grid = Grid({"y": 5, "x": 4}, {"y": 2, "x": 4})
    >>> len(grid), grid.ranges(2)
    (3, ((4, 5), (0, 4)))
    """

    lengths: Mapping[str, int]
    chunk: Mapping[str, int]

    def __post_init__(self) -> None:
        chunk = {dim: self.chunk.get(dim, length) for dim, length in self.lengths.items()}
        for dim, size in chunk.items():
            if not (isinstance(size, int) and size >= min(1, self.lengths[dim])):
                raise InputError(
                    f"A chunk of {size!r} along '{dim}' is not possible: use 1 to "
                    f"{max(1, self.lengths[dim])}."
                )
        unknown = sorted(set(self.chunk) - set(self.lengths))
        if unknown:
            raise InputError(f"chunks= names {unknown}, but what is cut has {list(self.lengths)}.")
        object.__setattr__(
            self, "chunk", {d: max(1, min(n, self.lengths[d])) for d, n in chunk.items()}
        )
        object.__setattr__(self, "lengths", dict(self.lengths))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Number of chunks along each dimension (one for an empty dimension)."""
        return tuple(
            max(1, -(-length // size))
            for length, size in zip(self.lengths.values(), self.chunk.values(), strict=True)
        )

    def __len__(self) -> int:
        return prod(self.counts)

    def ranges(self, number: int) -> Ranges:
        """Return the ranges of one chunk."""
        found = []
        for count, (dim, length) in zip(
            reversed(self.counts), reversed(list(self.lengths.items())), strict=True
        ):
            number, index = divmod(number, count)
            start = index * self.chunk[dim]
            found.append((start, min(start + self.chunk[dim], length)))
        return tuple(reversed(found))

    def block(self, cells: range) -> Ranges:
        """Return the ranges of chunks that lie side by side: see :meth:`longest_block`."""
        first = self.ranges(cells.start)
        if len(cells) == 1:
            return first
        last = self.ranges(cells.stop - 1)
        return tuple((start, stop) for (start, _), (_, stop) in zip(first, last, strict=True))

    def longest_block(self, start: int, most: int) -> int:
        """Return how many chunks from this number on make up one block, at most so many.

        Part of a row, or whole rows; part of a plane only if it is whole rows.

        Examples
        --------
        >>> grid = Grid({"y": 8, "x": 10}, {"y": 1, "x": 2})
        >>> [grid.longest_block(0, most) for most in (3, 7, 13)], grid.longest_block(3, 13)
        ([3, 5, 10], 2)
        """
        length, row = 1, 1
        for count in reversed(self.counts):
            if start % row:
                break
            rows = min(most // row, count - start // row % count)
            length = max(length, rows * row)
            row *= count
        return length

    def __iter__(self) -> Iterator[Ranges]:
        return (self.ranges(number) for number in range(len(self)))


def format_ranges(ranges: Ranges) -> str:
    """Return ranges as a slice that can be pasted behind an array.

    Examples
    --------
    >>> format_ranges(((0, 1), (2000, 3000)))
    '[0:1, 2000:3000]'
    """
    return f"[{', '.join(f'{start}:{stop}' for start, stop in ranges)}]"
