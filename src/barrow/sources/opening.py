"""Open anything that barrow can read.

Looks at the kind of thing that was given and hands it to the module that knows
the format. A file is recognised by its first bytes, not by its name.
"""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.model.source import Source
from barrow.sources.naming import keep_dims

ACCEPTED = (
    "a NumPy array or memory map, a Dask array, an xarray DataArray, a Zarr array or group, "
    "an h5py dataset or file, or the path of a .npy, Zarr, OME-Zarr, HDF5 or TIFF file"
)
_LIBRARIES = {
    "dask": "dask_arrays",
    "xarray": "labelled",
    "zarr": "zarr_arrays",
    "h5py": "hdf5",
    "numpy": "memory",
}
_SIGNATURES = {
    b"\x93NUMPY": "mapped",
    b"\x89HDF\r\n\x1a\n": "hdf5",
    b"II*\0": "tiff",
    b"MM\0*": "tiff",
    b"II+\0": "tiff",
    b"MM\0+": "tiff",
}
_USER_BLOCKS = (0, 512, 1024, 2048, 4096)
"""Where an HDF5 file may begin: others can put text of their own before it."""


def open_source(data: Any, *, name: str | None = None, dims: Sequence[str] | None = None) -> Source:
    """Return data as a source; no value is read yet.

    Parameters
    ----------
    data
        A NumPy array or memory map, a Dask array, an xarray DataArray, a Zarr
        array or group, an h5py dataset or file, or the path of a ``.npy``, Zarr,
        OME-Zarr, HDF5 or TIFF file. A source is returned as it is.
    name
        Which of the arrays inside a file or group: a dataset of an HDF5 file, an
        array of a Zarr group, a resolution level of an OME-Zarr or TIFF image
        (``"1"``; ``"2/0"`` for level 0 of series 2 of a TIFF). For a single
        array it is just what the source is called.
    dims
        Names for the dimensions, in storage order. By default those that the
        data carry, otherwise ``dim_0``, ``dim_1`` and so on.

    Examples
    --------
    >>> import numpy as np
    >>> movie = open_source(np.zeros((100, 48, 64), "u1"), dims=("frame", "height", "width"))
    >>> movie.lengths
    {'frame': 100, 'height': 48, 'width': 64}
    >>> open_source([1, 2, 3])
    Traceback (most recent call last):
        ...
    barrow.errors.InputError: A list is not an array. Convert it: np.asarray(data).
    """
    if isinstance(data, Source):
        keep_dims(data.dims, dims, "The source")
        return data
    if isinstance(data, (str, os.PathLike)):
        return _open_path(os.fspath(data), name, dims)
    for library in _libraries_of(data):
        if library in _LIBRARIES:
            return _opener(_LIBRARIES[library], "open_object")(data, name, dims)
    if isinstance(data, (list, tuple, int, float, complex, bool)):
        raise InputError(f"A {type(data).__name__} is not an array. Convert it: np.asarray(data).")
    raise InputError(f"{_describe(data)} cannot be opened. Give {ACCEPTED}.")


def _open_path(text: str, name: str | None, dims: Sequence[str] | None) -> Source:
    if "://" in text:
        return _opener("zarr_arrays", "open_path")(text, name, dims)
    path = Path(text).expanduser().absolute()
    if not path.exists():
        raise InputError(f"{str(path)!r} does not exist.{_hint(path)}")
    module = _format_of(path)
    if module is None:
        kind = "a folder that is no Zarr array or group" if path.is_dir() else "of another format"
        raise InputError(
            f"{str(path)!r} is {kind}. barrow opens .npy, Zarr, OME-Zarr, HDF5 and TIFF files by "
            "their path; read anything else with its own library and give the array."
        )
    return _opener(module, "open_path")(str(path), name, dims)


def _opener(module: str, function: str) -> Callable[..., Source]:
    opener: Callable[..., Source] = getattr(import_module(f"barrow.sources.{module}"), function)
    return opener


def _libraries_of(data: Any) -> list[str]:
    # Asking for the module's name decides without importing the libraries.
    return [kind.__module__.partition(".")[0] for kind in type(data).__mro__]


def _format_of(path: Path) -> str | None:
    if path.is_dir():
        is_zarr = any((path / file).exists() for file in ("zarr.json", ".zarray", ".zgroup"))
        return "zarr_arrays" if is_zarr else None
    with path.open("rb") as file:
        for start in _USER_BLOCKS:
            file.seek(start)
            head = file.read(8)
            for signature, module in _SIGNATURES.items():
                if head.startswith(signature) and (start == 0 or module == "hdf5"):
                    return module
    return None


def _hint(path: Path) -> str:
    """Say how far the path does exist: most are misspelt in one place."""
    parent = next(folder for folder in path.parents if folder.exists())
    if parent != path.parent:
        return f" The last folder on the way that does is {str(parent)!r}."
    try:
        others = sorted(entry for entry in os.listdir(parent) if not entry.startswith("."))
    except OSError:
        return ""
    if not others:
        return f" {str(parent)!r} is empty."
    more = ", ..." if len(others) > 5 else ""
    return f" {str(parent)!r} holds {', '.join(map(repr, others[:5]))}{more}."


def _describe(data: Any) -> str:
    kind = type(data)
    where = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    is_arraylike = hasattr(data, "__array__") and not isinstance(data, np.generic)
    advice = " (np.asarray(data) may make an array of it)" if is_arraylike else ""
    return f"A {where}{kind.__qualname__}{advice}"
