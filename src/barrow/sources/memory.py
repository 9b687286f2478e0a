"""Sources in the memory of this process.

Threads read views of the user's own array. Other processes of this machine read
a copy in shared memory; workers elsewhere are sent just the block they need.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import numpy as np

from barrow.errors import InputError, TravelError
from barrow.model.grid import Grid
from barrow.model.source import Reader, Source
from barrow.shared import Ranges, SharedArray
from barrow.sources.blocks import to_index
from barrow.sources.identity import identify_array
from barrow.sources.naming import build_source


def open_object(data: Any, name: str | None, dims: Sequence[str] | None) -> Source:
    """Return a NumPy array as a source."""
    from barrow.sources.mapped import find_mapping

    if isinstance(data, np.ma.MaskedArray):
        raise InputError(
            "A masked array cannot be opened, for its mask would be lost. "
            "Fill it first: data.filled(value)."
        )
    if not isinstance(data, np.ndarray):
        raise InputError(
            f"A NumPy {type(data).__name__} is not an array. Convert it: np.asarray(data)."
        )
    reader = find_mapping(data) or ArrayReader(np.asarray(data))
    return build_source(reader, name=name or "array", shape=data.shape, dtype=data.dtype, dims=dims)


@dataclass(frozen=True, eq=False)
class ArrayReader(Reader):
    """Read views of an array, or of one block of an array."""

    is_heavy: ClassVar[bool] = True

    array: np.ndarray
    origin: tuple[int, ...] = ()
    """Where the array begins in the source, if it is only a block of it."""

    def __call__(self, ranges: Ranges) -> np.ndarray:
        if self.origin:
            ranges = tuple(
                (start - shift, stop - shift)
                for (start, stop), shift in zip(ranges, self.origin, strict=True)
            )
        return lock(self.array[to_index(ranges)])

    def only(self, ranges: Ranges) -> Reader:
        return ArrayReader(self(ranges), tuple(start for start, _ in ranges))

    def identity(self) -> str | None:
        return identify_array(self.array)

    def shared(self) -> Reader:
        if self.origin or self.array.dtype.hasobject:
            return self
        return SharedReader(*SharedArray.share(self.array))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.array, self.array.dtype, self.origin)


def _rebuild(array: np.ndarray, dtype: np.dtype, origin: tuple[int, ...]) -> ArrayReader:
    # Pickle's older protocols lose the byte order of an array, though not of a dtype.
    return ArrayReader(array.astype(dtype, copy=False), origin)


@dataclass(frozen=True, eq=False)
class SharedReader(Reader):
    """Read an array in shared memory.

    The process that made it keeps it alive and reads views; others map the block.
    """

    handle: SharedArray
    owner: np.ndarray | None = field(default=None, repr=False)

    def __call__(self, ranges: Ranges) -> np.ndarray:
        if self.owner is None:
            return self.handle.read(ranges)
        return lock(self.owner[to_index(ranges)])

    def identity(self) -> str | None:
        everything = tuple((0, length) for length in self.handle.shape)
        return identify_array(self(everything))

    def __reduce__(self) -> tuple[type["SharedReader"], tuple[SharedArray]]:
        return SharedReader, (self.handle,)


@dataclass(frozen=True, eq=False)
class HeldReader(Reader):
    """Read an open object of another library that no other process can open."""

    is_heavy: ClassVar[bool] = True

    held: Any
    """Anything with a shape, a dtype and an index of slices."""
    grain: tuple[int, ...]

    def __call__(self, ranges: Ranges) -> np.ndarray:
        return np.asarray(self.held[to_index(ranges)], self.held.dtype)

    def only(self, ranges: Ranges) -> Reader:
        return ArrayReader(self(ranges), tuple(start for start, _ in ranges))

    def identity(self) -> str | None:
        return identify_array(self(tuple((0, length) for length in self.held.shape)))

    def shared(self) -> Reader:
        if np.dtype(self.held.dtype).hasobject:
            return self
        handle, array = SharedArray.create(tuple(self.held.shape), np.dtype(self.held.dtype))
        for ranges in self._pieces():
            array[to_index(ranges)] = self(ranges)
        return SharedReader(handle, array)

    def _pieces(self) -> Iterator[Ranges]:
        # Whole storage chunks along the first dimension: never two copies of everything.
        lengths = {str(axis): length for axis, length in enumerate(self.held.shape)}
        return iter(Grid(lengths, dict(zip(list(lengths)[:1], self.grain, strict=False))))

    def __reduce__(self) -> NoReturn:
        raise TravelError(
            f"{self.held!r} lives in the memory of this process and cannot be sent to another. "
            "Store it in a folder or file first, and give its path."
        )


def lock(view: np.ndarray) -> np.ndarray:
    """Return a view of an array that nobody can write through."""
    view = view.view()
    view.flags.writeable = False
    return view
