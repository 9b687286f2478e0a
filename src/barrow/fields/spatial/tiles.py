"""Tiles: views of a raster that overlap, laid side by side, and put together again.

Along a dimension, views of length v overlap by 2 × margin or more; each owns v - 2 × margin and
sees at least ``margin`` beyond a border that it shares. What they own begins at multiples of its
length, so chunks of the raster that are cut alike are read from one view each. Laid side by side
the views are an array of their own, whose chunks of length v are the views: one of them can be
worked on without the others. Integer arithmetic and reading; no function is called here.
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
    (3, [(0, 10), (4, 14), (10, 20)], [(0, 6), (6, 12), (12, 20)])
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
        """Number of views; the last one owns what it sees at the end."""
        if self.view >= self.length:
            return 1
        return -(-(self.length - self.margin) // self.step)

    @property
    def step(self) -> int:
        """What a view owns: from one border to the next."""
        return max(1, self.view - 2 * self.margin)

    @property
    def laid(self) -> int:
        """Length of all views side by side."""
        return self.slot(self.count - 1)[1]

    def span(self, number: int) -> tuple[int, int]:
        """Return what a view sees."""
        start = max(0, number * self.step - self.margin)
        return start, min(start + self.view, self.length)

    def slot(self, number: int) -> tuple[int, int]:
        """Return where a view lies among all, side by side."""
        start, stop = self.span(number)
        return number * self.view, number * self.view + stop - start

    def core(self, number: int) -> tuple[int, int]:
        """Return what a view owns."""
        is_last = number == self.count - 1
        return number * self.step, self.length if is_last else (number + 1) * self.step

    def at(self, place: int) -> int:
        """Return the view that owns a place."""
        return min(place // self.step, self.count - 1)

    def shift(self, number: int) -> int:
        """Return how far a view is moved to lie beside the others."""
        return number * self.view - self.span(number)[0]


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
            shift = axis.shift(number)
            yield low, high, low - shift, high - shift

    def cores(self, dim: str, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (in the raster, in the views that own it) for a range of the raster."""
        axis = self.axes[dim]
        for number in range(axis.at(start), axis.at(stop - 1) + 1) if start < stop else ():
            first, last = axis.core(number)
            low, high = max(start, first), min(stop, last)
            shift = axis.shift(number)
            yield low, high, low + shift, high + shift


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
    grain = {dim: min(axis.step, axis.length) for dim, axis in tiling.axes.items()}
    return replace(views, lengths=tiling.lengths, grain=grain, read=read, labels=None)
