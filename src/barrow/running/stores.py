"""The Zarr store of a result: made once, its chunks aligned with those of the tasks.

A plain result is one Zarr array. A labelled one is a group with the array and
its coordinates, which ``xarray.open_zarr`` opens as it is.
"""

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import OutputError
from barrow.model.source import Source

# Zarr writes a chunk under such a name and renames it when it is whole.
_HALF_WRITTEN = re.compile(r"\.[0-9a-f]{32}\.partial$")


def create_store(
    path: Path,
    *,
    lengths: Mapping[str, int],
    dtype: np.dtype,
    chunks: Mapping[str, int],
    variable: str | None,
    labels: Any,
    has_array: bool = False,
) -> Path:
    """Make an empty store and return the path of its array.

    Parameters
    ----------
    variable
        Name of the array in a labelled store; None for a plain one.
    labels
        An empty DataArray that carries the coordinates and attributes.
    has_array
        Whether the array is there already; only what lies beside it is written again.
    """
    import zarr

    array = array_path(path, variable)
    try:
        attributes = {} if variable is None else _write_labels(path, labels)
    except OSError as error:
        raise _unwritable(path, error) from error
    if has_array:
        return array
    try:
        with _without_warnings():
            zarr.create_array(
                store=str(array),
                shape=tuple(lengths.values()),
                dtype=dtype,
                chunks=_shape_of_chunks(lengths, chunks),
                dimension_names=list(lengths),
                attributes=attributes,
                zarr_format=3,
            )
    except (TypeError, ValueError) as error:
        raise OutputError(
            f"A result of dtype {dtype} cannot be stored: {error}. "
            "Return a number, bool, text of fixed length or date instead."
        ) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    return array


def _write_labels(path: Path, labels: Any) -> dict[str, Any]:
    """Store the coordinates and return the attributes."""
    # Zarr lists the members of a group and wonders about any folder that is not one itself.
    (path / ".barrow" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    # How the coordinates were stored at their source does not matter here.
    coordinates = labels.coords.to_dataset().drop_attrs(deep=False).drop_encoding()
    with _without_warnings():
        coordinates.to_zarr(path, mode="a", zarr_format=3, consolidated=False)
    return {str(key): _as_json(value) for key, value in labels.attrs.items()}


def array_path(path: Path, variable: str | None) -> Path:
    """Return where the array of a store lies."""
    return path if variable is None else path / variable


def variable_of(target: Source) -> str | None:
    """Return the name of the array in the store of a result; None if it has no labels."""
    return None if target.labels is None else str(target.labels.name or "result")


def is_as_made(
    path: Path,
    *,
    lengths: Mapping[str, int],
    dtype: np.dtype,
    chunks: Mapping[str, int],
    variable: str | None,
) -> bool:
    """Return whether a store that was begun earlier can still be used."""
    import zarr

    try:
        for made in (path / "zarr.json", *path.glob("*/zarr.json")):
            json.loads(made.read_text())
        with _without_warnings():
            array = zarr.open_array(str(array_path(path, variable)), mode="r")
        return (
            array.shape == tuple(lengths.values())
            and array.dtype == dtype
            and array.chunks == _shape_of_chunks(lengths, chunks)
        )
    except Exception:
        # Whatever Zarr says about it: it cannot be used.
        return False


def sweep(path: str | Path) -> int:
    """Remove what writers that were killed left half written; return how many files it were."""
    count = 0
    for folder, _, names in os.walk(path):
        for name in names:
            if _HALF_WRITTEN.search(name):
                Path(folder, name).unlink(missing_ok=True)
                count += 1
    return count


def open_store(path: Path) -> Any:
    """Return the Zarr array of a finished store, for reading."""
    import zarr

    with _without_warnings():
        return zarr.open_array(str(path), mode="r")


def open_finished(path: Path) -> Any:
    """Return the result in a store: a Zarr array, or a DataArray over one if it is labelled."""
    import zarr

    with _without_warnings():
        if isinstance(zarr.open(str(path), mode="r"), zarr.Array):
            return open_store(path)
        import xarray

        stored = xarray.open_zarr(path, consolidated=False)
        (name,) = stored.data_vars
        return stored[name]


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{path} cannot be written: {error.strerror or error}.")


def _shape_of_chunks(lengths: Mapping[str, int], chunks: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(max(1, chunks.get(dim, length)) for dim, length in lengths.items())


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keep quiet about dtypes that Zarr has no final specification for: users have them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _as_json(value: Any) -> Any:
    """Return an attribute as JSON can hold it; what it cannot becomes text."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)
    return value
