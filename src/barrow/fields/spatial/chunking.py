"""What users write for blocks and their neighbours, as numbers by dimension."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.spatial.raster import spatial_dims

Depth = int | Sequence[int] | Mapping[Any, int]


def read_depth(depth: Depth | None, dims: Sequence[str]) -> dict[str, int]:
    """Return the halo of each dimension of space.

    Examples
    --------
    >>> read_depth(4, ("c", "y", "x")), read_depth((0, 2, 3), ("c", "y", "x"))
    ({'y': 4, 'x': 4}, {'y': 2, 'x': 3})
    """
    space = spatial_dims(dims)
    if depth is None:
        return {}
    if isinstance(depth, Mapping):
        found = {_name(key, dims, "depth"): width for key, width in depth.items()}
    elif isinstance(depth, Sequence):
        named = {len(dims): tuple(dims), len(space): space}.get(len(depth))
        if named is None:
            raise InputError(
                f"depth={tuple(depth)} has {len(depth)} numbers: give one for each of {space}."
            )
        found = dict(zip(named, depth, strict=True))
    else:
        found = dict.fromkeys(space, depth)
    if found.get("c"):
        raise InputError(f"depth={depth!r} asks for neighbours of channels, which have none.")
    return {dim: width for dim, width in found.items() if dim != "c" and width}


def read_chunks(chunks: Any, dims: Sequence[str]) -> dict[str, int]:
    """Return the length of blocks along each dimension that is named.

    Examples
    --------
    >>> read_chunks(512, ("c", "y", "x")), read_chunks(((3,), (8, 8, 4), (6, 6)), ("c", "y", "x"))
    ({'y': 512, 'x': 512}, {'c': 3, 'y': 8, 'x': 6})
    """
    if chunks is None:
        return {}
    if isinstance(chunks, Mapping):
        given = {_name(key, dims, "chunks"): size for key, size in chunks.items()}
    elif isinstance(chunks, Sequence):
        space = spatial_dims(dims)
        named = {len(dims): tuple(dims), len(space): space}.get(len(chunks))
        if named is None:
            raise InputError(
                f"chunks={chunks!r} has {len(chunks)} entries: give one for each of {tuple(dims)}."
            )
        given = dict(zip(named, chunks, strict=True))
    else:
        given = dict.fromkeys(spatial_dims(dims), chunks)
    return {dim: _one_size(size, dim) for dim, size in given.items()}


def _one_size(size: Any, dim: str) -> int:
    if isinstance(size, Sequence) and len(size):
        first, *_, last = (*size, size[-1])
        if any(n != first for n in size[:-1]) or last > first:
            raise InputError(
                f"chunks={tuple(size)} along '{dim}' are of unequal length. Give one length: "
                "barrow cuts blocks of equal length, the last one shorter."
            )
        size = first
    if not isinstance(size, (int, np.integer)) or size < 1:
        raise InputError(f"chunks={size!r} along '{dim}' is not a length: use 1 or more.")
    return int(size)


def _name(key: Any, dims: Sequence[str], argument: str) -> str:
    if key in dims:
        return str(key)
    if isinstance(key, int) and -len(dims) <= key < len(dims):
        return dims[key]
    raise InputError(f"{argument}= names {key!r}, but the raster has {tuple(dims)}.")
