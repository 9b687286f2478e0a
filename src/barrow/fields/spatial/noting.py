"""Objects are measured while their tile is at hand: rows of each tile, noted beside its labels.

An image is read and unpacked once, for the model and for the table. A tile notes only what it
owns, so rows of all tiles add up to the whole. How objects cross its borders is marked as well, so
that nobody has to read labels where tiles agree. All that lies in files, because a run keeps one
result: written before the labels of the tile are, so a tile that is done has its rows.
"""

import os
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from barrow.fields.spatial.joining import Marks, Numbers, mark_borders
from barrow.fields.spatial.measuring import MeasureBlock, Parts
from barrow.fields.spatial.models import Anchored
from barrow.fields.spatial.tiles import Tiling

MARK = "mark of "
"""Before the names of borders, among those of columns."""


@dataclass(frozen=True)
class Noted:
    """What was noted about all tiles."""

    parts: Parts
    marks: Mapping[Numbers, Marks]


@dataclass(frozen=True)
class Notes:
    """Where the rows of tiles are kept."""

    folder: Path
    tiling: Tiling

    def find(self, places: Sequence[np.ndarray]) -> Numbers | None:
        """Return the numbers of the view that has just these pixels; None if there is none."""
        numbers = []
        for axis, place in zip(self.tiling.axes.values(), places, strict=True):
            if not len(place):
                return None
            first, last = int(place[0]), int(place[-1]) + 1
            number = 0 if first == 0 else min((first + axis.margin) // axis.step, axis.count - 1)
            if axis.span(number) != (first, last):
                return None
            numbers.append(number)
        return tuple(numbers)

    def owned(self, numbers: Numbers) -> tuple[slice, ...]:
        """Return the part of a view that it owns."""
        inside = []
        for axis, number in zip(self.tiling.axes.values(), numbers, strict=True):
            start = axis.span(number)[0]
            first, last = axis.core(number)
            inside.append(slice(first - start, last - start))
        return tuple(inside)

    def write(self, numbers: Numbers, parts: Parts, marks: Marks) -> None:
        """Keep the rows of one view, and marks of its borders; whole, or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, half = tempfile.mkstemp(dir=self.folder, suffix=".partial")
        with os.fdopen(handle, "wb") as file:
            marked = {f"{MARK}{border}": np.array(mark) for border, mark in marks.items()}
            np.savez(file, **dict[str, Any]({**parts.rows[0], **marked}))
        os.replace(half, self._path(numbers))

    def read(self) -> Noted | None:
        """Return what was noted about all views; None if some of it is missing or damaged."""
        rows, marks = [], {}
        for numbers in np.ndindex(*(axis.count for axis in self.tiling.axes.values())):
            try:
                with np.load(self._path(numbers)) as found:
                    row = dict(found)
            except (OSError, ValueError, EOFError, zipfile.BadZipFile):
                return None
            names = [name for name in row if name.startswith(MARK)]
            marks[numbers] = {name.removeprefix(MARK): str(row.pop(name)) for name in names}
            rows.append(row)
        return Noted(Parts(tuple(rows)), marks)

    def _path(self, numbers: Numbers) -> Path:
        return self.folder / f"{'-'.join(map(str, numbers))}.npz"


@dataclass(frozen=True)
class Noting:
    """A model that sees one channel or all, and notes rows of its objects if it has a place."""

    named: Anchored
    axis: int | None
    """Of the channels in a tile; None if it has none."""
    channel: int | None = None
    """What the model sees; None for all."""
    has_image: bool = True
    """Whether to measure intensities."""
    notes: Notes | None = None

    @property
    def __name__(self) -> str:
        return self.named.__name__

    def __call__(self, tile: np.ndarray, *places: np.ndarray) -> np.ndarray:
        """Return the name of an object for each pixel; see :class:`Anchored`."""
        image = tile if self.axis is None else np.moveaxis(tile, self.axis, 0)
        labels = self.named(tile if self.channel is None else image[self.channel], *places)
        numbers = None if self.notes is None else self.notes.find(places)
        if self.notes is not None and numbers is not None:
            inside = self.notes.owned(numbers)
            own = [place[part] for place, part in zip(places, inside, strict=True)]
            block = MeasureBlock(self.named.lengths, self.has_image)
            where: tuple[Any, ...] = (..., *inside)
            also = [image[where]] if self.has_image else []
            rows = block(labels[inside], *own, *also)
            self.notes.write(numbers, rows, mark_borders(labels, self.notes.tiling, numbers))
        return labels
