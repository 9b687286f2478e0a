"""Readers that read through other readers: a picked channel, other axes, coarser pixels.

Each turns the block that is wanted into the block that is needed. Nothing is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.identity import identify_text
from barrow.sources.memory import ArrayReader

How = Literal["mean", "nearest"]


@dataclass(frozen=True, eq=False)
class ThroughReader(Reader):
    """A reader that needs another one; it travels as that one does."""

    inner: Reader

    @property
    def is_heavy(self) -> bool:  # type: ignore[override]
        """Whether the reader beneath is too large to travel."""
        return self.inner.is_heavy

    def only(self, ranges: Ranges) -> Reader:
        return ArrayReader(self(ranges), tuple(start for start, _ in ranges))

    def shared(self) -> Reader:
        return replace(self, inner=self.inner.shared())

    def identity(self) -> str | None:
        inner = self.inner.identity()
        if inner is None:
            return None
        own = [getattr(self, field.name) for field in fields(self)[1:]]
        return identify_text(inner, type(self).__name__, *own)


@dataclass(frozen=True, eq=False)
class DroppedReader(ThroughReader):
    """Leave dimensions of length one out."""

    is_dropped: tuple[bool, ...]

    def __call__(self, ranges: Ranges) -> np.ndarray:
        kept = iter(ranges)
        block = self.inner(tuple((0, 1) if gone else next(kept) for gone in self.is_dropped))
        return block[tuple(0 if gone else slice(None) for gone in self.is_dropped)]


@dataclass(frozen=True, eq=False)
class ChannelsFirstReader(ThroughReader):
    """Read samples that lie last as channels that come first."""

    axis: int

    def __call__(self, ranges: Ranges) -> np.ndarray:
        channels, *rest = ranges
        block = self.inner((*rest[: self.axis], channels, *rest[self.axis :]))
        return np.moveaxis(block, self.axis, 0)


@dataclass(frozen=True, eq=False)
class ChannelReader(ThroughReader):
    """Read one channel of an image whose channels come first."""

    channel: int

    def __call__(self, ranges: Ranges) -> np.ndarray:
        found: np.ndarray = self.inner(((self.channel, self.channel + 1), *ranges))[0]
        return found


@dataclass(frozen=True, eq=False)
class CoarseReader(ThroughReader):
    """Read an image at a coarser scale: means of its pixels, or one of them for labels."""

    factors: tuple[int, ...]
    how: How
    dtype: np.dtype

    def __call__(self, ranges: Ranges) -> np.ndarray:
        needed = [(a * f, b * f) for (a, b), f in zip(ranges, self.factors, strict=True)]
        return coarsen(self.inner(tuple(needed)), self.factors, self.how)


def coarsen(block: np.ndarray, factors: tuple[int, ...], how: How) -> np.ndarray:
    """Return an array with fewer, larger pixels; what does not fill a pixel is left out.

    Means of whole numbers are rounded, and summed exactly.

    Examples
    --------
    >>> coarsen(np.arange(8).reshape(2, 4), (2, 2), "mean")
    array([[3, 5]])
    >>> coarsen(np.arange(8).reshape(2, 4), (2, 2), "nearest")
    array([[5, 7]])
    """
    lengths = [n // f for n, f in zip(block.shape, factors, strict=True)]
    cut = tuple(slice(0, n * f) for n, f in zip(lengths, factors, strict=True))
    if how == "nearest":
        # The pixel at the middle, or just behind it.
        return block[cut][tuple(slice(f // 2, None, f) for f in factors)]
    total: Any = block[cut]
    is_whole = block.dtype.kind in "iub"
    for axis, factor in enumerate(factors):
        if factor == 1:
            continue
        parts = [total[(slice(None),) * axis + (slice(k, None, factor),)] for k in range(factor)]
        total = parts[0].astype(np.int64 if is_whole else np.float64)
        for part in parts[1:]:
            total += part
    count = int(np.prod(factors))
    if count == 1:
        return np.asarray(total)
    mean = (2 * total + count) // (2 * count) if is_whole else total / count
    return np.asarray(mean.astype(block.dtype))


def channels_first(source: Source) -> Source:
    """Return an image whose channels, if it has any, come first."""
    axis = source.dims.index("c") if "c" in source.dims else 0
    if axis == 0:
        return source
    dims = ("c", *(d for d in source.dims if d != "c"))
    return replace(
        source,
        lengths={d: source.lengths[d] for d in dims},
        grain={d: source.grain[d] for d in dims if d in source.grain},
        read=ChannelsFirstReader(source.read, axis),
    )


def pick(source: Source, channel: int) -> Source:
    """Return one channel of an image as a source without channels."""
    image = channels_first(source)
    return replace(
        image,
        lengths={d: n for d, n in image.lengths.items() if d != "c"},
        grain={d: n for d, n in image.grain.items() if d != "c"},
        read=ChannelReader(image.read, channel),
        labels=None,
    )


def coarser(source: Source, factors: dict[str, int], how: How) -> Source:
    """Return a raster at a coarser scale as a source; nothing is read."""
    each = tuple(factors.get(dim, 1) for dim in source.dims)
    lengths = {d: n // f for (d, n), f in zip(source.lengths.items(), each, strict=True)}
    return replace(
        source,
        lengths=lengths,
        grain={d: max(1, source.grain[d] // factors.get(d, 1)) for d in lengths},
        read=CoarseReader(source.read, each, how, source.dtype),
        labels=None,
    )


def gather(inner: Any, parts: Sequence[Any], ranges: Ranges, dtype: np.dtype) -> np.ndarray:
    """Read pieces (here, there) of a block and put each into its place."""
    if all(len(part) == 1 for part in parts):
        found: np.ndarray = inner(tuple((part[0][2], part[0][3]) for part in parts))
        return found
    block = np.empty([stop - start for start, stop in ranges], dtype)
    for piece in product(*parts):
        here = tuple(
            slice(low - start, high - start)
            for (low, high, _, _), (start, _) in zip(piece, ranges, strict=True)
        )
        block[here] = inner(tuple((low, high) for _, _, low, high in piece))
    return block
