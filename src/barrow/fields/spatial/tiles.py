"""Tiles: views of a raster that overlap, laid side by side, and put together again.

Along a dimension of length n, views of length v overlap by 2 × margin; each owns what is
nearer to its middle than ``margin`` from a border that it shares. Laid side by side they are an
array of their own, whose chunks of length v are the views: one of them can be worked on without
the others. Integer arithmetic and reading; no function is called here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from barrow.errors import InputError
from barrow.fields.spatial.readers import ThroughReader, gather
from barrow.model.source import Source
from barrow.shared import Ranges


@dataclass(frozen=True)
class Axis:
    """Views along one dimension.

    Examples
    --------
    >>> axis = Axis(length=20, view=10, margin=2)
    >>> axis.count, [axis.span(i) for i in range(3)], [axis.core(i) for i in range(3)]
    (3, [(0, 10), (6, 16), (12, 20)], [(0, 8), (8, 14), (14, 20)])
    """

    length: int
    view: int
    margin: int

    def __post_init__(self) -> None:
        if self.view < self.length and self.view <= 2 * self.margin:
            raise InputError(
                f"Tiles of {self.view} pixels that overlap by {2 * self.margin} have nothing of "
                f"their own. Use chunks of more than {2 * self.margin} pixels."
            )

    @property
    def count(self) -> int:
        """Number of views."""
        if self.view >= self.length:
            return 1
        return -(-(self.length - 2 * self.margin) // self._step)

    @property
    def laid(self) -> int:
        """Length of all views side by side."""
        start, stop = self.span(self.count - 1)
        return (self.count - 1) * self.view + stop - start

    def span(self, number: int) -> tuple[int, int]:
        """Return what a view sees."""
        start = number * self._step
        return start, min(start + self.view, self.length)

    def core(self, number: int) -> tuple[int, int]:
        """Return what a view owns."""
        start, stop = self.span(number)
        start += self.margin if number else 0
        return start, stop if number == self.count - 1 else stop - self.margin

    def at(self, place: int) -> int:
        """Return the view that owns a place."""
        return max(0, min((place - self.margin) // self._step, self.count - 1))

    @property
    def _step(self) -> int:
        return max(1, self.view - 2 * self.margin)


@dataclass(frozen=True)
class Tiling:
    """Views of a raster along each of its dimensions; those that are not cut have one."""

    axes: Mapping[str, Axis]

    @classmethod
    def cut(
        cls, lengths: Mapping[str, int], views: Mapping[str, int], margins: Mapping[str, int]
    ) -> "Tiling":
        """Return views of given lengths."""
        return cls(
            {
                dim: Axis(n, max(1, min(views.get(dim, n), n)), margins.get(dim, 0))
                for dim, n in lengths.items()
            }
        )

    @property
    def lengths(self) -> dict[str, int]:
        """Dimensions of the raster."""
        return {dim: axis.length for dim, axis in self.axes.items()}

    @property
    def laid(self) -> dict[str, int]:
        """Dimensions of all views side by side."""
        return {dim: axis.laid for dim, axis in self.axes.items()}

    @property
    def views(self) -> dict[str, int]:
        """Dimensions of a view."""
        return {dim: axis.view for dim, axis in self.axes.items()}

    @property
    def count(self) -> int:
        """Number of views."""
        return int(np.prod([axis.count for axis in self.axes.values()]))

    def pieces(self, dim: str, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (in views, in the raster) for a range of views side by side."""
        axis = self.axes[dim]
        for number in range(start // axis.view, -(-stop // axis.view)):
            low, high = max(start, number * axis.view), min(stop, (number + 1) * axis.view)
            shift = axis.span(number)[0] - number * axis.view
            yield low, high, low + shift, high + shift

    def cores(self, dim: str, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (in the raster, in the views that own it) for a range of the raster."""
        axis = self.axes[dim]
        place = start
        while place < stop:
            number = axis.at(place)
            first, last = axis.core(number)
            while not first <= place < last:  # the first and the last view own more
                number += 1 if place >= last else -1
                first, last = axis.core(number)
            high = min(stop, last)
            shift = number * axis.view - axis.span(number)[0]
            yield place, high, place + shift, high + shift
            place = high

    def borders(self, dim: str) -> Iterator["Border"]:
        """Yield the borders between neighbouring views along a dimension."""
        axis = self.axes[dim]
        for number in range(axis.count - 1):
            yield Border(dim, number, axis.core(number)[1])


@dataclass(frozen=True)
class Border:
    """Where one view ends to own and the next begins."""

    dim: str
    number: int
    """Of the view before it."""
    place: int
    """The first pixel of the view behind it."""


@dataclass(frozen=True, eq=False)
class TiledReader(ThroughReader):
    """Read the views of a raster, side by side."""

    tiling: Tiling
    dims: tuple[str, ...]
    dtype: np.dtype

    def __call__(self, ranges: Ranges) -> np.ndarray:
        parts = [
            list(self.tiling.pieces(dim, *bounds))
            for dim, bounds in zip(self.dims, ranges, strict=True)
        ]
        return gather(self.inner, parts, ranges, self.dtype)


@dataclass(frozen=True, eq=False)
class OwnedReader(ThroughReader):
    """Read a raster from views side by side: of each the part that it owns."""

    tiling: Tiling
    dims: tuple[str, ...]
    dtype: np.dtype

    def __call__(self, ranges: Ranges) -> np.ndarray:
        parts = [
            list(self.tiling.cores(dim, *bounds))
            for dim, bounds in zip(self.dims, ranges, strict=True)
        ]
        return gather(self.inner, parts, ranges, self.dtype)


def lay(source: Source, tiling: Tiling) -> Source:
    """Return the views of a raster side by side, as a source; other dimensions as they are."""
    whole = {d: tiling.axes.get(d) or Axis(n, n, 0) for d, n in source.lengths.items()}
    full = Tiling(whole)
    read = TiledReader(source.read, full, source.dims, source.dtype)
    return replace(source, lengths=full.laid, grain=full.views, read=read, labels=None)


def put_together(views: Source, tiling: Tiling) -> Source:
    """Return the raster that views side by side make up, as a source."""
    read = OwnedReader(views.read, tiling, tuple(tiling.axes), views.dtype)
    grain = {dim: max(1, axis.view - 2 * axis.margin) for dim, axis in tiling.axes.items()}
    return replace(views, lengths=tiling.lengths, grain=grain, read=read, labels=None)
