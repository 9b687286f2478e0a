"""Name sources and their dimensions.

Words only: nothing here opens or reads anything.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.model.source import Labels, Reader, Source


def build_source(
    read: Reader,
    *,
    name: str,
    shape: Sequence[int],
    dtype: Any,
    dims: Sequence[str] | None = None,
    found: Sequence[str | None] | None = None,
    grain: Sequence[int] = (),
    labels: Labels | None = None,
) -> Source:
    """Return a source whose dimensions have names.

    Parameters
    ----------
    dims
        Names that the user chose; they win over those found in the data.
    found
        Names that the data carry. Names that are missing or doubled are of no
        use, and the dimensions are numbered instead.
    grain
        Length of a storage chunk along each dimension; empty if there is none.
    """
    usable = found is not None and _are_names(found, len(shape))
    chosen = check_dims(dims, shape) if dims is not None else tuple(found or ()) if usable else None
    names = chosen if chosen is not None else tuple(f"dim_{axis}" for axis in range(len(shape)))
    lengths = {str(dim): int(length) for dim, length in zip(names, shape, strict=True)}
    return Source(
        name=name,
        lengths=lengths,
        dtype=np.dtype(dtype),
        read=read,
        grain=dict(zip(lengths, map(int, grain), strict=False)),
        labels=labels,
        has_names=chosen is not None,
    )


def check_dims(dims: Sequence[str], shape: Sequence[int]) -> tuple[str, ...]:
    """Return the names given for dimensions, or say what is wrong with them.

    Examples
    --------
    >>> check_dims(("y", "x"), (480, 752))
    ('y', 'x')
    >>> check_dims(("y", "y"), (480, 752))
    Traceback (most recent call last):
        ...
    barrow.errors.InputError: dims=('y', 'y') does not give each dimension its own name.
    """
    names = (dims,) if isinstance(dims, str) else tuple(dims)
    if len(names) != len(shape):
        raise InputError(
            f"dims={names!r} has {len(names)} names, but the data have {len(shape)} dimensions, "
            f"of lengths {tuple(shape)}. Name each of them."
        )
    if not all(isinstance(dim, str) and dim for dim in names):
        raise InputError(f"dims={names!r} must be names: use text for each dimension.")
    if len(set(names)) < len(names):
        raise InputError(f"dims={names!r} does not give each dimension its own name.")
    return names


def keep_dims(own: Sequence[str], dims: Sequence[str] | None, what: str) -> None:
    """Refuse new names for data whose names mean something to its labels."""
    if dims is not None and tuple(dims) != tuple(own):
        raise InputError(
            f"{what} has named dimensions {tuple(own)!r} already, so dims={tuple(dims)!r} is one "
            "too many. Leave dims= out, or rename the data first."
        )


def stem_of(path: str) -> str:
    """Return what people call a file: its name up to the first dot.

    Examples
    --------
    >>> stem_of("/data/slide.ome.zarr"), stem_of("frames.npy"), stem_of("/data/.hidden")
    ('slide', 'frames', '.hidden')
    """
    full = PurePath(path).name
    return full.partition(".")[0] or full or "array"


def list_names(names: Sequence[str]) -> str:
    """Return names as people write them, the first twenty of them.

    Examples
    --------
    >>> list_names(["raw", "mask"])
    "'raw', 'mask'"
    """
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(map(repr, names[:20])) + more


def _are_names(names: Sequence[str | None], count: int) -> bool:
    are_text = all(isinstance(name, str) and name for name in names)
    return are_text and len(names) == count == len(set(names))
