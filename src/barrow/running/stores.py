"""The Zarr store of a result: made once, its chunks aligned with those of the tasks.

A plain result is one Zarr array. A labelled one is a group with the array and
its coordinates, which ``xarray.open_zarr`` opens as it is.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import OutputError


def create_store(
    path: Path,
    *,
    lengths: Mapping[str, int],
    dtype: np.dtype,
    chunks: Mapping[str, int],
    variable: str | None,
    labels: Any,
) -> Path:
    """Make an empty store and return the path of its array.

    Parameters
    ----------
    variable
        Name of the array in a labelled store; None for a plain one.
    labels
        An empty DataArray that carries the coordinates and attributes.
    """
    import zarr

    attributes: dict[str, Any] = {}
    if variable is not None:
        # Zarr lists the members of a group and wonders about any folder that is not one itself.
        (path / ".barrow" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
        # How the coordinates were stored at their source does not matter here.
        coordinates = labels.coords.to_dataset().drop_attrs(deep=False).drop_encoding()
        with _without_warnings():
            coordinates.to_zarr(path, mode="a", zarr_format=3, consolidated=False)
        attributes = {str(key): _as_json(value) for key, value in labels.attrs.items()}
    array = array_path(path, variable)
    try:
        with _without_warnings():
            zarr.create_array(
                store=str(array),
                shape=tuple(lengths.values()),
                dtype=dtype,
                chunks=tuple(max(1, chunks.get(dim, length)) for dim, length in lengths.items()),
                dimension_names=list(lengths),
                attributes=attributes,
                zarr_format=3,
            )
    except (TypeError, ValueError) as error:
        raise OutputError(
            f"A result of dtype {dtype} cannot be stored: {error}. "
            "Return a number, bool, text of fixed length or date instead."
        ) from error
    return array


def array_path(path: Path, variable: str | None) -> Path:
    """Return where the array of a store lies."""
    return path if variable is None else path / variable


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
