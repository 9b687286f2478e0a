"""xarray objects: labels taken off before the work and put on again after it.

What is beneath decides how values are read: memory and Dask arrays like any
other, variables still in their file block by block, without being cached.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import isfile
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.model.source import Labels, Reader, Source
from barrow.shared import Ranges
from barrow.sources.blocks import to_index
from barrow.sources.identity import identify_file, identify_text
from barrow.sources.naming import build_source, check_dims, keep_dims, list_names


def open_object(data: Any, name: str | None, dims: Sequence[str] | None) -> Source:
    """Return a DataArray, or the one variable of a Dataset, as a source.

    Examples
    --------
    >>> import numpy as np, xarray
    >>> image = xarray.DataArray(np.eye(3), dims=("y", "x"), name="image", attrs={"unit": "mm"})
    >>> source = open_object(image, None, None)
    >>> source.name, source.dims, dict(source.labels.attrs)
    ('image', ('y', 'x'), {'unit': 'mm'})
    """
    array = _choose_variable(data, name)
    check_dims(array.dims, array.shape)
    keep_dims(array.dims, dims, "The DataArray")
    called = str(array.name) if array.name is not None else name or "array"
    # A dataset of the coordinates alone: it keeps their indexes, but not the values.
    labels = Labels(array.name, array.coords.to_dataset(), dict(array.attrs))
    return replace(_open_values(array.variable, called), labels=labels)


def put_labels(
    values: Any, lengths: Mapping[str, int], kept: Collection[str], labels: Labels
) -> Any:
    """Return an answer labelled like the question it came from.

    Parameters
    ----------
    values
        The answer: a NumPy or Dask array.
    lengths
        Length of each of its dimensions, in order.
    kept
        Dimensions that came through unchanged. Coordinates that lie along no
        others are kept; what they would label elsewhere is not known any more.
    labels
        The labels of the source.

    Examples
    --------
    >>> import numpy as np, xarray
    >>> coords = {"y": [5, 6, 7], "x": [0, 1, 2]}
    >>> image = xarray.DataArray(np.eye(3), dims=("y", "x"), coords=coords)
    >>> labels = open_object(image, None, None).labels
    >>> put_labels(np.zeros((3, 2)), {"y": 3, "x": 2}, {"y"}, labels)
    <xarray.DataArray (y: 3, x: 2)> Size: 48B
    array([[0., 0.],
           [0., 0.],
           [0., 0.]])
    Coordinates:
      * y        (y) int64 24B 5 6 7
    Dimensions without coordinates: x
    """
    import xarray

    lost = [dim for dim in labels.coords.dims if dim not in kept or dim not in lengths]
    coords = labels.coords.drop_dims(lost).coords
    return xarray.DataArray(
        values, coords=coords, dims=tuple(lengths), name=labels.name, attrs=dict(labels.attrs)
    )


def _choose_variable(data: Any, name: str | None) -> Any:
    import xarray

    if isinstance(data, xarray.DataArray):
        return data
    if isinstance(data, xarray.Variable):
        return xarray.DataArray(data, name=name)
    if not isinstance(data, xarray.Dataset):
        raise InputError(
            f"An xarray {type(data).__name__} is not an array. Give one of its DataArrays."
        )
    names = list(map(str, data.data_vars))
    if name is not None and name in data.variables:
        return data[name]
    if name is None and len(names) == 1:
        return data[names[0]]
    problem = "holds" if name is None else f"has no variable {name!r}; it holds"
    raise InputError(
        f"The Dataset {problem} {list_names(names) or 'nothing'}. Choose one with name=, "
        "or give data[name]."
    )


def _open_values(variable: Any, name: str) -> Source:
    from barrow.sources import dask_arrays, memory

    if variable.chunks is not None:
        return dask_arrays.open_object(variable.data, name, variable.dims)
    if variable._in_memory:
        return memory.open_object(variable.values, name, variable.dims)
    if not hasattr(variable._data, "get_duck_array"):
        kind = f"{type(variable._data).__module__}.{type(variable._data).__qualname__}"
        raise InputError(
            f"The DataArray holds values of type {kind}, not a NumPy or Dask array. "
            "Convert it first, for example with data.as_numpy()."
        )
    # A slice of everything is a variable of its own: values that the user loads
    # later are cached in the user's one and do not travel with this.
    detached = variable[(slice(None),) * variable.ndim]
    return build_source(
        VariableReader(detached, name),
        name=name,
        shape=variable.shape,
        dtype=variable.dtype,
        dims=variable.dims,
        grain=_find_grain(variable),
    )


@dataclass(frozen=True, eq=False)
class VariableReader(Reader):
    """Read blocks of an xarray variable that is still in its file."""

    variable: Any
    name: str

    def __call__(self, ranges: Ranges) -> np.ndarray:
        block = self.variable[to_index(ranges)].values
        return np.asarray(block, self.variable.dtype)

    def identity(self) -> str | None:
        *_, bottom = _layers(self.variable)
        stored = _identify_store(bottom, self.variable.encoding.get("source"))
        place = identify_text(
            self.name, self.variable.shape, self.variable.dtype, *_find_cuts(self.variable)
        )
        return stored and f"{stored}|{place}"


def _identify_store(bottom: Any, path: str | None) -> str | None:
    if type(bottom).__name__ == "ZarrArrayWrapper":
        from barrow.sources.zarr_arrays import find_reader

        return find_reader(bottom._array).identity()
    return identify_file(path) if path is not None and isfile(path) else None


def _layers(variable: Any) -> Iterator[Any]:
    """Return what xarray has wrapped around the array in the file, and that last."""
    layer = variable._data
    while layer is not None:
        yield layer
        layer = getattr(layer, "array", None)


def _find_cuts(variable: Any) -> Iterator[str]:
    """Return what was cut from, or done to, the variable in the file, as text."""
    for layer in _layers(variable):
        key = getattr(layer, "key", None)
        yield f"{type(layer).__name__} {getattr(key, 'tuple', '')}"
    for setting in ("scale_factor", "add_offset", "_FillValue", "units", "calendar"):
        yield f"{setting} {variable.encoding.get(setting)}"


def _find_grain(variable: Any) -> Sequence[int]:
    preferred = variable.encoding.get("preferred_chunks")
    if preferred:
        return [_first(preferred.get(dim, 1)) for dim in variable.dims]
    chunks = variable.encoding.get("chunks") or variable.encoding.get("chunksizes") or ()
    return chunks if len(chunks) == variable.ndim else ()


def _first(size: int | Sequence[int]) -> int:
    return size if isinstance(size, int) else int(size[0])
