"""A function whose neighbours beyond one edge lie at the other: the border mode ``wrap``."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from barrow.composing import fuse
from barrow.errors import InputError
from barrow.fields.spatial.readers import ThroughReader, gather
from barrow.model.applied import call_safely
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.shared import Ranges


@dataclass(frozen=True, eq=False)
class WrappedReader(ThroughReader):
    """Read the answer of a function on a raster that goes on at its other edge."""

    step: Step
    lengths: tuple[int, ...]
    widths: tuple[int, ...]
    dtype: np.dtype

    def __call__(self, ranges: Ranges) -> np.ndarray:
        needed = tuple((a - w, b + w) for (a, b), w in zip(ranges, self.widths, strict=True))
        parts = [list(_around(*r, n)) for r, n in zip(needed, self.lengths, strict=True)]
        answer = call_safely(self.step, [gather(self.inner, parts, needed, self.dtype)])
        inside = tuple(slice(w, w + b - a) for (a, b), w in zip(ranges, self.widths, strict=True))
        return np.asarray(answer)[inside]


def wrap(source: Source, step: Step, depth: Mapping[str, int]) -> Source:
    """Return the answer of a function as a source whose edges wrap around."""
    learnt = fuse(replace(step, halo=depth, border="reflect"), [source])
    if learnt.lengths != source.lengths:
        raise InputError(f"border='wrap' is for functions that keep the shape; '{step.name}' "
                         f"returns {learnt.shape} for {source.shape}.")  # fmt: skip
    widths = tuple(depth.get(dim, 0) for dim in source.dims)
    read = WrappedReader(source.read, step, source.shape, widths, source.dtype)
    return replace(source, name=step.name, dtype=learnt.dtype, read=read)


def _around(start: int, stop: int, length: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield pieces (wanted, there) of a range that goes over the edges.

    Examples
    --------
    >>> list(_around(-2, 3, 10))
    [(-2, 0, 8, 10), (0, 3, 0, 3)]
    """
    place = start
    while place < stop:
        there = place % length
        count = min(stop - place, length - there)
        yield place, place + count, there, there + count
        place += count
