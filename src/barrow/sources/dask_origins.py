"""Find the files behind a Dask array, so that a change of them is noticed.

The name of a Dask array tells how it is computed, but not whether the files it
reads are still the same. They are found by looking at what the tasks hold: open
Zarr and HDF5 arrays, also inside the wrappers of xarray, and paths.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from barrow.sources.identity import identify_file, identify_folder, identify_text

_DEEPEST = 8
_LONGEST_PATH = 4096


def identify_origins(graph: Mapping[Any, Any]) -> str | None:
    """Return text that changes with any file behind the tasks; None if one cannot be told.

    Examples
    --------
    >>> import dask.array as da
    >>> from barrow.sources.dask_graphs import prepare_graph
    >>> identify_origins(prepare_graph(da.ones(10)))
    ''
    """
    identities = set()
    seen: set[int] = set()
    for node in graph.values():
        for held in _held_by(node):
            if id(held) in seen:
                continue
            seen.add(id(held))
            for origin in _find_origins(held, _DEEPEST):
                identity = _identify(origin)
                if identity is None:
                    return None
                identities.add(identity)
    return identify_text(*sorted(identities)) if identities else ""


def _held_by(node: Any) -> Iterator[Any]:
    yield getattr(node, "value", None)
    yield from getattr(node, "args", ())
    yield from (getattr(node, "kwargs", None) or {}).values()


def _find_origins(held: Any, depth: int) -> Iterator[Any]:
    """Yield the files, folders and open arrays that an object holds."""
    if isinstance(held, (str, Path)):
        if len(str(held)) < _LONGEST_PATH and os.path.exists(held):
            yield Path(held)
    elif _is_kind(held, "zarr", "Array") or _is_kind(held, "h5py", "Dataset"):
        yield held
    elif isinstance(held, (list, tuple)) and depth:
        for part in held:
            yield from _find_origins(part, depth - 1)
    elif isinstance(held, Mapping) and depth:
        for part in held.values():
            yield from _find_origins(part, depth - 1)
    elif type(held).__module__.partition(".")[0] == "xarray" and depth:
        # xarray wraps a stored array several times over.
        for name in ("array", "_array", "_filename"):
            part = getattr(held, name, None)
            if part is None and name == "_filename":
                part = getattr(getattr(held, "datastore", None), name, None)
            if part is not None:
                yield from _find_origins(part, depth - 1)


def _identify(origin: Any) -> str | None:
    if isinstance(origin, Path):
        return identify_folder(str(origin)) if origin.is_dir() else identify_file(str(origin))
    if _is_kind(origin, "h5py", "Dataset"):
        return identify_file(origin.file.filename)
    from barrow.sources.zarr_arrays import find_reader

    return find_reader(origin).identity()


def _is_kind(held: Any, module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(held, getattr(loaded, name))
