"""TIFF files: stacks, OME-TIFF, ImageJ, tiled and pyramidal images.

Pixels that lie in the file as they are, are mapped. Of anything else only the
tiles or strips that a block touches are read and decoded.
"""

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.blocks import to_index
from barrow.sources.identity import identify_file
from barrow.sources.mapped import MappedReader
from barrow.sources.naming import build_source, stem_of

_UNKNOWN_AXES = "QI?_"
"""Letters by which tifffile says that it does not know what an axis means."""


def open_path(path: str, name: str | None, dims: Sequence[str] | None) -> Source:
    """Return an image of a file as a source: the first one, at its finest level.

    Examples
    --------
    >>> import numpy as np, tempfile, tifffile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/cells.tif"
    ...     tifffile.imwrite(path, np.eye(64, dtype="u1"), tile=(32, 32), compression="zlib")
    ...     cells = open_path(path, None, None)
    ...     cells.lengths, cells.grain
    ({'y': 64, 'x': 64}, {'y': 32, 'x': 32})
    """
    import tifffile

    with tifffile.TiffFile(path) as file:
        series, level = _choose_level(file, path, name)
        image = file.series[series].levels[level]
        mapped = _find_mapping(image, path)
        shape, axes, dtype = image.shape, image.axes, image.dtype
    reader = mapped or TiffReader(path, series, level, identify_file(path) or "")
    return build_source(
        reader,
        name=stem_of(path),
        shape=shape,
        dtype=mapped.dtype if mapped else dtype,
        dims=dims,
        found=name_axes(axes),
        grain=() if isinstance(reader, MappedReader) else reader.chunks,
    )


def name_axes(axes: str) -> list[str]:
    """Return names for the letters by which TIFF calls its axes.

    Examples
    --------
    >>> name_axes("TCYX"), name_axes("QQYXS")
    (['t', 'c', 'y', 'x'], ['page', 'page_1', 'y', 'x', 's'])
    """
    names: list[str] = []
    for letter in axes:
        name = "page" if letter in _UNKNOWN_AXES else letter.lower()
        doubles = sum(other.partition("_")[0] == name for other in names)
        names.append(f"{name}_{doubles}" if doubles else name)
    return names


@dataclass(frozen=True)
class TiffReader(Reader):
    """Read blocks of an image by the tiles or strips they touch."""

    path: str
    series: int
    level: int
    stamp: str
    """State of the file when it was opened: another file needs another look."""

    def __call__(self, ranges: Ranges) -> np.ndarray:
        array = self._open()
        return np.asarray(array[to_index(ranges)], array.dtype)

    @property
    def chunks(self) -> tuple[int, ...]:
        """Lengths of a tile or strip along each dimension."""
        return tuple(self._open().chunks)

    def identity(self) -> str | None:
        file = identify_file(self.path)
        return file and f"{file}|{self.series}/{self.level}"

    def _open(self) -> Any:
        return _open_level(self.path, self.series, self.level, self.stamp, os.getpid())


@lru_cache(maxsize=8)
def _open_level(path: str, series: int, level: int, stamp: str, process: int) -> Any:  # noqa: ARG001
    """Return an open image; a forked process opens its own, for the file position is shared."""
    import tifffile
    import zarr

    file = tifffile.TiffFile(path)
    array: Any = zarr.open_array(store=file.series[series].aszarr(level=level), mode="r")
    weakref.finalize(array, file.close)
    return array


def _choose_level(file: Any, path: str, name: str | None) -> tuple[int, int]:
    """Return the numbers of the series and of its level: ``"1"`` or ``"2/1"``."""
    words = (name or "0").split("/")
    numbers = [int(word) for word in words if word.isdecimal()]
    series, level = (0, *numbers)[-2:] if len(numbers) == len(words) <= 2 else (-1, -1)
    if 0 <= series < len(file.series) and 0 <= level < len(file.series[series].levels):
        return series, level
    if not file.series:
        raise InputError(f"{path!r} is a TIFF file without an image.")
    images = "; ".join(
        f"series {number} {' × '.join(map(str, found.shape))} with "
        f"{len(found.levels)} level{'s' * (len(found.levels) > 1)}"
        for number, found in enumerate(file.series[:10])
    )
    raise InputError(
        f"name={name!r} is not in {path!r}, which holds {images}. Use name='level', counted "
        "from 0, for the first series, or name='series/level'."
    )


def _find_mapping(image: Any, path: str) -> MappedReader | None:
    """Return a reader of pixels that lie in the file one after the other, uncompressed."""
    if image.dataoffset is None or not prod(image.shape):
        return None
    dtype = np.dtype(image.dtype).newbyteorder(image.keyframe.parent.byteorder)
    strides = [dtype.itemsize] * len(image.shape)
    for axis in range(len(image.shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * image.shape[axis + 1]
    return MappedReader(path, image.dataoffset, dtype, tuple(image.shape), tuple(strides))
