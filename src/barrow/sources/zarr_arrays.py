"""Zarr arrays, version 2 and 3.

A reader is the address of an array. The process that uses it opens the store and
keeps a few arrays open; they hold metadata only, no file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from os.path import abspath
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.identity import identify_files, identify_folder
from barrow.sources.memory import HeldReader
from barrow.sources.naming import build_source, stem_of
from barrow.sources.parts import read_in_parts
from barrow.sources.zarr_groups import Choice, choose_array

_METADATA = {2: (".zarray", ".zattrs"), 3: ("zarr.json",)}


def open_path(path: str, name: str | None, dims: Sequence[str] | None) -> Source:
    """Return an array at a path, or inside a group at that path, as a source.

    Examples
    --------
    >>> import tempfile, zarr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/movie.zarr"
    ...     array = zarr.create_array(path, shape=(90, 48), chunks=(30, 48), dtype="u1")
    ...     movie = open_path(path, None, ("frame", "pixel"))
    ...     movie.name, movie.grain, movie.read(((0, 1), (0, 3)))
    ('movie', {'frame': 30, 'pixel': 48}, array([[0, 0, 0]], dtype=uint8))
    """
    import zarr

    try:
        found = zarr.open(path, mode="r")
    except (FileNotFoundError, ValueError, ImportError) as error:
        raise InputError(f"{path!r} cannot be opened as Zarr: {error}") from error
    return _open_choice(choose_array(found, name), dims, fallback=stem_of(path.rstrip("/")))


def open_object(data: Any, name: str | None, dims: Sequence[str] | None) -> Source:
    """Return an open Zarr array, or an array inside an open group, as a source."""
    import zarr

    if isinstance(data, zarr.Array):
        choice = Choice(data, None, name)
    elif isinstance(data, zarr.Group):
        choice = choose_array(data, name)
    else:
        raise InputError(f"A Zarr {type(data).__name__} is not an array. Give a zarr.Array.")
    root = getattr(data.store, "root", None)
    stem = stem_of(data.path or (str(root) if root is not None else "array"))
    return _open_choice(choice, dims, fallback=stem)


def _open_choice(choice: Choice, dims: Sequence[str] | None, *, fallback: str) -> Source:
    array = choice.array
    return build_source(
        find_reader(array),
        name=choice.name or fallback,
        shape=array.shape,
        dtype=array.dtype,
        dims=dims,
        found=choice.dims or _find_dims(array),
        # In a sharded array this is the chunk inside the shard: what can be read alone.
        grain=array.chunks,
    )


def find_reader(array: Any) -> Reader:
    """Return the reader that suits the store in which an open array lies."""
    from zarr.storage import LocalStore, MemoryStore

    store = array.store
    version = int(array.metadata.zarr_format)
    if isinstance(store, LocalStore):
        root = abspath(store.root)
        return ZarrReader(root, array.path, version, _stamp(root, array.path, version))
    if isinstance(store, MemoryStore):
        return HeldReader(array, tuple(array.shards or array.chunks))
    return StoreReader(array)


@dataclass(frozen=True)
class ZarrReader(Reader):
    """Read blocks of an array in a folder."""

    root: str
    path: str
    """The array inside the root; empty if it is the root."""
    version: int
    stamp: tuple[int, ...]
    """When the metadata were written: an array made anew is not the one kept open."""

    def __call__(self, ranges: Ranges) -> np.ndarray:
        array = _open_array(self.root, self.path, self.version, self.stamp)
        return read_in_parts(array, ranges, array.chunks)

    def identity(self) -> str | None:
        folder = Path(self.root, self.path)
        chunks = identify_folder(str(folder))
        metadata = identify_files(*(folder / file for file in _METADATA[self.version]))
        return chunks and f"{chunks}|{metadata}"


@dataclass(frozen=True, eq=False)
class StoreReader(Reader):
    """Read blocks of an array in a store that finds its own way: a server, an archive."""

    array: Any

    def __call__(self, ranges: Ranges) -> np.ndarray:
        return read_in_parts(self.array, ranges, self.array.chunks)


@lru_cache(maxsize=64)
def _open_array(root: str, path: str, version: Any, stamp: tuple[int, ...]) -> Any:  # noqa: ARG001
    import zarr

    return zarr.open_array(store=root, path=path, mode="r", zarr_format=version)


def _stamp(root: str, path: str, version: int) -> tuple[int, ...]:
    status = Path(root, path, _METADATA[version][0]).stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _find_dims(array: Any) -> Sequence[str | None] | None:
    """Return the names in Zarr's own metadata, or those that xarray writes."""
    named: Sequence[str | None] | None = getattr(array.metadata, "dimension_names", None)
    return named or array.attrs.get("_ARRAY_DIMENSIONS")
