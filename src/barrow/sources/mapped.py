"""Arrays in uncompressed files, read through a memory map.

A block is a read-only view of the file: pages are read when they are touched,
and nothing is copied. Every read maps the file anew and the mapping goes with
the block, so no process holds the file longer than it needs it.
"""

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barrow.errors import InputError
from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.blocks import to_index
from barrow.sources.identity import identify_file, identify_text
from barrow.sources.naming import build_source, stem_of


def open_path(path: str, name: str | None, dims: Sequence[str] | None) -> Source:
    """Return a ``.npy`` file as a source.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/movie.npy", np.arange(12).reshape(3, 4))
    ...     movie = open_path(f"{folder}/movie.npy", None, ("frame", "pixel"))
    ...     movie.name, movie.read(((1, 2), (0, 3)))
    ('movie', array([[4, 5, 6]]))
    """
    try:
        array = np.load(path, mmap_mode="r")
    except ValueError as error:
        raise InputError(
            f"{path!r} cannot be mapped: {error} An array of Python objects has no fixed layout; "
            "store it with a number or text dtype."
        ) from error
    reader = find_mapping(array) or MappedReader(
        path, array.offset, array.dtype, array.shape, array.strides
    )
    return build_source(
        reader, name=name or stem_of(path), shape=array.shape, dtype=array.dtype, dims=dims
    )


def find_mapping(array: np.ndarray) -> "MappedReader | None":
    """Return a reader of the file beneath a memory map, or None for other arrays.

    A slice or a transposed view of a map is found as well. Maps that keep their
    changes to themselves (mode ``"c"``) differ from their file, and are ordinary
    memory.
    """
    pages = getattr(array, "_mmap", None)
    path = getattr(array, "filename", None)
    if not isinstance(array, np.memmap) or pages is None or array.mode == "c":
        return None
    if path is None or not os.path.isfile(path) or array.dtype.hasobject or not array.size:
        return None
    # A slice carries the offset of the map it was cut from, so addresses have to tell.
    beginning = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    shift = _address(array) - _address(np.frombuffer(pages, np.uint8))
    return MappedReader(
        os.path.abspath(path), beginning + shift, array.dtype, array.shape, array.strides
    )


@dataclass(frozen=True)
class MappedReader(Reader):
    """Read views of a file that holds the values as they are."""

    path: str
    offset: int
    """Where the first value lies in the file."""
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __call__(self, ranges: Ranges) -> np.ndarray:
        if any(start == stop for start, stop in ranges):
            return np.empty([stop - start for start, stop in ranges], self.dtype)
        with open(self.path, "rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        whole: np.ndarray = np.ndarray(self.shape, self.dtype, pages, self.offset, self.strides)
        block: np.ndarray = whole[to_index(ranges)]
        return block

    def identity(self) -> str | None:
        file = identify_file(self.path)
        place = identify_text(self.offset, self.dtype.descr, self.shape, self.strides)
        return file and f"{file}|{place}"


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
