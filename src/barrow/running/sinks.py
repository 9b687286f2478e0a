"""Where the blocks of a result go: memory of this process, shared memory, a Zarr store.

A sink is sent to the workers, so it is small; it writes a block into its place
and says how many bytes that were. No two tasks write the same place.
"""

import os
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product
from typing import Any, ClassVar, Protocol

import numpy as np

from barrow.shared import Ranges, SharedArray

# Files that are looked at to tell how large a block is as it is stored.
FILES_LOOKED_AT = 64


@dataclass(frozen=True)
class Trouble:
    """Why a block could not be put into its place."""

    code: int
    """What the system said: a number of :mod:`errno`; 0 if it said nothing."""
    text: str


class WriteError(Exception):
    """A block could not be put into its place: the place is to blame, not the function."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble)
        self.trouble = trouble


class Sink(Protocol):
    """Takes the blocks of a result."""

    is_lasting: ClassVar[bool]
    """Whether what was written is still there when this process has ended."""

    def write(self, ranges: Ranges, block: np.ndarray) -> None:
        """Put one block into its place."""


@dataclass(frozen=True)
class MemorySink:
    """An array of this process: for in-line work and threads."""

    is_lasting: ClassVar[bool] = False
    array: np.ndarray

    def write(self, ranges: Ranges, block: np.ndarray) -> None:
        """Put one block into its place."""
        self.array[tuple(slice(start, stop) for start, stop in ranges)] = block


@dataclass(frozen=True)
class SharedSink:
    """An array that worker processes of this machine write into."""

    is_lasting: ClassVar[bool] = False
    handle: SharedArray

    def write(self, ranges: Ranges, block: np.ndarray) -> None:
        """Put one block into its place."""
        self.handle.write(ranges, block)


@dataclass(frozen=True)
class ZarrSink:
    """A Zarr store that every worker can reach."""

    is_lasting: ClassVar[bool] = True
    path: str
    run: int = 0
    """Differs from run to run: an array that was opened for an earlier one may have had other
    chunks."""
    lease: str = ""
    """File with the number of the run that may write; without one, any run may."""

    def write(self, ranges: Ranges, block: np.ndarray) -> None:
        """Put one block into its place, unless the run is over.

        A task cannot be stopped when its run is interrupted, in a thread or on a worker of
        somebody else. It may end when another function is at work on the same store.
        """
        if self.lease and read_lease(self.lease) != self.run:
            raise WriteError(Trouble(0, "the run is over, or its folder was changed"))
        try:
            _open(self.path, self.run)[tuple(slice(start, stop) for start, stop in ranges)] = block
        except OSError as error:
            text = error.strerror or str(error)
            raise WriteError(Trouble(error.errno or 0, text)) from None

    def stored_share(self, ranges: Ranges) -> float:
        """Return how many bytes are stored for each byte of a block."""
        array = _open(self.path, self.run)
        spans = [
            range(start // size, -(-stop // size))
            for (start, stop), size in zip(ranges, array.chunks, strict=True)
        ]
        keys = [
            array.metadata.encode_chunk_key(place)
            for place in islice(product(*spans), FILES_LOOKED_AT)
        ]
        stored = sum(_file_bytes(f"{self.path}/{key}") for key in keys)
        whole = len(keys) * int(np.prod(array.chunks)) * array.dtype.itemsize
        return float(min(1.0, stored / max(1, whole)))

    def read(self, ranges: Ranges) -> np.ndarray:
        """Return one block as it is stored."""
        found = _open(self.path, self.run)[tuple(slice(start, stop) for start, stop in ranges)]
        return np.asarray(found)


def read_lease(path: str) -> int | None:
    """Return the number of the run that may write now; None if the store is not there any more."""
    try:
        with open(path, "rb") as file:
            return int(file.read())
    except FileNotFoundError:
        return None


def blank(ranges: Ranges, dtype: np.dtype) -> np.ndarray:
    """Return what stands where there is no answer: NaN or NaT, or zero where there is none.

    It takes no memory, however large the block.

    Examples
    --------
    >>> blank(((0, 1), (4, 6)), np.dtype("f4")), blank(((0, 2),), np.dtype("u1"))
    (array([[nan, nan]], dtype=float32), array([0, 0], dtype=uint8))
    """
    value = np.zeros((), dtype)
    if dtype.kind in "fcMm":
        value[...] = "NaT" if dtype.kind in "Mm" else np.nan
    return np.broadcast_to(value, [stop - start for start, stop in ranges])


def _file_bytes(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0  # a chunk of zeros has no file


@lru_cache(maxsize=8)
def _open(path: str, run: int) -> Any:  # noqa: ARG001 - part of what is remembered
    import zarr

    return zarr.open_array(path, mode="r+")
