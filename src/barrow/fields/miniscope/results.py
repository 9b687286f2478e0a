"""Results as their users know them: one Zarr store for each variable, opened with xarray."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.miniscope.footprints import Footprints

VARIABLES = ("A", "C", "S", "b", "f", "YrA", "motion", "max_proj", "b0", "g", "m", "sn")
_DIMS: dict[str, tuple[str, ...]] = {
    "A": ("unit_id", "height", "width"),
    "C": ("unit_id", "frame"),
    "S": ("unit_id", "frame"),
    "YrA": ("unit_id", "frame"),
    "b": ("height", "width"),
    "f": ("frame",),
    "motion": ("frame", "shift_dim"),
    "max_proj": ("height", "width"),
    "b0": ("unit_id",),
    "g": ("unit_id", "lag"),
    "m": ("unit_id", "delay"),
    "sn": ("unit_id",),
}
_UNITS_AT_ONCE = 16


@dataclass(frozen=True)
class Result:
    """The cells of a movie; arrays are read from disk when they are looked at.

    Attributes are the variables: ``A`` (unit × height × width), ``C``, ``S`` and ``YrA``
    (unit × frame), ``b`` and ``f`` (background), ``motion``, ``max_proj``, and for each unit
    ``b0``, ``g``, ``m`` and ``sn``: baseline, coefficients of the autoregressive process, what part
    of its activity goes into it in the same frame and the next two, and noise.
    """

    folder: Path
    redone: tuple[str, ...] = ()
    """Steps that this run computed; all others were found as an earlier run left them."""

    def __getattr__(self, name: str) -> Any:
        if name not in VARIABLES:
            raise AttributeError(name)
        return _open_variable(self.folder, name)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the run."""
        found: dict[str, Any] = json.loads((self.folder / "params.json").read_text())
        return found

    @property
    def units(self) -> int:
        """How many cells were found."""
        return int(self.C.sizes["unit_id"])

    def to_dataset(self) -> Any:
        """Return all variables as one xarray Dataset."""
        import xarray

        return xarray.Dataset({name: getattr(self, name) for name in VARIABLES})

    def __repr__(self) -> str:
        return f"Result: {self.units} units, {self.C.sizes['frame']} frames, in {self.folder}"


def load(folder: str | os.PathLike[str]) -> Result:
    """Return the results of a run."""
    found = Result(Path(folder))
    missing = [name for name in VARIABLES if not (found.folder / f"{name}.zarr").exists()]
    if missing:
        raise InputError(
            f"{str(folder)!r} holds no finished result: {', '.join(missing)} are missing. The same "
            "call of barrow.miniscope.run goes on with it."
        )
    return found


def write(
    folder: Path, A: Footprints, arrays: Mapping[str, np.ndarray], params: Mapping[str, Any]
) -> None:
    """Write all variables; each store appears when it is whole."""
    shape = arrays["max_proj"].shape
    for name in VARIABLES:
        if name == "A":
            _write(folder, name, (A.shape[1], *shape), np.dtype("f4"), _blocks(A, shape))
        else:
            values = np.asarray(arrays[name])
            if values.dtype == np.float64:
                values = values.astype(np.float32)
            _write(folder, name, values.shape, values.dtype, iter([(slice(None), values)]))
    half = folder / "params.json.part"
    half.write_text(json.dumps(params, indent=2, default=_plain) + "\n")
    half.replace(folder / "params.json")


def _plain(value: Any) -> Any:
    """Return a slice as two numbers, which can be given again; else text."""
    return [value.start, value.stop] if isinstance(value, slice) else str(value)


def _blocks(A: Footprints, shape: tuple[int, ...]) -> Iterator[tuple[slice, np.ndarray]]:
    for start in range(0, A.shape[1], _UNITS_AT_ONCE):
        part = A[:, start : start + _UNITS_AT_ONCE].T.toarray()
        yield slice(start, start + len(part)), part.reshape(-1, *shape)


def _write(
    folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype, blocks: Iterator[Any]
) -> None:
    import xarray
    import zarr

    place, half = folder / f"{name}.zarr", folder / f".{name}.zarr.part"
    shutil.rmtree(half, ignore_errors=True)
    dims = _DIMS[name]
    coords: dict[str, Any] = {
        dim: np.arange(length) for dim, length in zip(dims, shape, strict=True)
    }
    # Text has no place in Zarr's standard yet: 0 is height, 1 is width.
    xarray.Dataset(coords=coords).to_zarr(half, mode="w", zarr_format=3, consolidated=False)
    chunks = tuple(
        max(1, min(length, _UNITS_AT_ONCE if dim == "unit_id" and len(dims) > 1 else length))
        for dim, length in zip(dims, shape, strict=True)
    )
    if all(shape):
        array: Any = zarr.create_array(
            store=str(half / name), shape=shape, dtype=dtype, chunks=chunks, dimension_names=dims
        )
        for where, values in blocks:
            array[where] = values
    else:
        zarr.create_array(
            store=str(half / name), shape=shape, dtype=dtype, chunks=chunks, dimension_names=dims
        )
    shutil.rmtree(place, ignore_errors=True)
    half.replace(place)


def _open_variable(folder: Path, name: str) -> Any:
    import xarray

    place = folder / f"{name}.zarr"
    if not place.exists():
        raise InputError(f"{str(place)!r} does not exist. Is {str(folder)!r} the folder of a run?")
    return xarray.open_zarr(place, consolidated=False, chunks=None)[name]
