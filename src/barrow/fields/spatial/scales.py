"""Several scales of one raster: each made from the one before."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray

from barrow import api
from barrow.errors import InputError
from barrow.fields.spatial.deferred import as_dask
from barrow.fields.spatial.dressing import Names, dress
from barrow.fields.spatial.elements import is_element, model_of
from barrow.fields.spatial.means import Means, keep
from barrow.fields.spatial.ome import Described, write_group
from barrow.fields.spatial.raster import Raster, is_labels, open_raster
from barrow.fields.spatial.readers import How, coarser

# The coarsest scale fits a screen.
SMALLEST = 1024


def pyramid(
    data: Any,
    to: Any,
    *,
    factor: int = 2,
    levels: int | None = None,
    memory: Any = None,
    cluster: Any = None,
    quiet: bool = False,
) -> xarray.DataTree:
    """Write a raster as OME-Zarr with several scales.

    Parameters
    ----------
    data
        An image or labels; see :func:`barrow.spatial.map_raster`.
    to
        Place for the OME-Zarr group.
    factor
        How much coarser each scale is. Pixels of images are means, those of labels one of the
        labels beneath.
    levels
        Number of scales; by default until the coarsest fits a screen.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> tree = pyramid(np.ones((2, 64, 96), "u2"), f"{tempfile.mkdtemp()}/a.zarr", levels=3)
    >>> tree["scale2"]["image"].shape
    (2, 16, 24)
    """
    raster = open_raster(data)
    if factor < 2:
        raise InputError(f"factor={factor!r} makes nothing coarser: use 2 or more.")
    space = [dim for dim in raster.spatial if dim != "z"]
    longest = max(raster.source.lengths[dim] for dim in space)
    if levels is None:
        levels = 1
        while longest // factor**levels * factor > SMALLEST:
            levels += 1
    means = Means(memory=memory, cluster=cluster, quiet=quiet)
    source = replace(raster.source, labels=None)
    means.map(keep, source, name="scale 0", to=_place(to, 0))
    return finish_group(raster, to, [dict.fromkeys(space, factor)] * (levels - 1), means)


def finish_group(
    raster: Raster,
    to: Any,
    factors: Sequence[Mapping[str, int]],
    means: Means,
    names: Names | None = None,
    lengths: Mapping[str, int] | None = None,
) -> xarray.DataTree:
    """Make the coarser scales of a stored array, describe all, and return them as a tree."""
    path, dims = Path(to), tuple(lengths or raster.source.dims)
    stored = [api.open(path / "0", dims=dims)]
    how = how_of(dims, stored[0].dtype)
    total: list[Mapping[str, float]] = [{}]
    for number, step in enumerate(factors, start=1):
        source = coarser(stored[-1], dict(step), how)
        if 0 in source.shape:
            break
        means.map(keep, source, name=f"scale {number}", to=_place(to, number))
        stored.append(api.open(path / str(number), dims=dims))
        total.append({d: total[-1].get(d, 1) * step.get(d, 1) for d in dims})
    base = raster.source
    kept = [d for d in dims if base.lengths.get(d) == stored[0].lengths[d]]
    levels = [dress(as_dask(s, s.grain), s.lengths, kept, base, names or Names()) for s in stored]
    attrs = levels[0].attrs
    channels = [str(name) for name in levels[0].coords["c"].values] if "c" in dims else None
    described = Described(
        channels, attrs.get("scale", {}), attrs.get("translation", {}), attrs.get("units", {})
    )
    write_group(path, path.name.partition(".")[0], dims, described, total,
                is_labels=how == "nearest")  # fmt: skip
    return xarray.DataTree.from_dict(
        {f"scale{n}": level.to_dataset(name="image") for n, level in enumerate(levels)}
    )


def rebuild(finest: xarray.DataArray, raster: Raster) -> xarray.DataTree:
    """Return all scales of a lazy raster again, made from its finest one."""
    dims = tuple(str(dim) for dim in finest.dims)
    factors = [{d: f for d, f in step.items() if d in dims} for step in raster.factors]
    if is_element(finest):
        plain = xarray.DataArray(finest)
        tree: xarray.DataTree = model_of(dims).parse(plain, dims=dims, scale_factors=factors)
        return tree
    source = api.open(finest.data, dims=dims)
    base = api.open(xarray.DataArray(finest))
    levels = {"scale0": finest.to_dataset(name="image")}
    for number, step in enumerate(factors, start=1):
        source = coarser(source, step, how_of(dims, source.dtype))
        values = as_dask(source, source.grain)
        kept = [d for d in dims if d not in step]
        level = dress(values, source.lengths, kept, base, Names())
        levels[f"scale{number}"] = level.to_dataset(name="image")
    return xarray.DataTree.from_dict(levels)


def how_of(dims: Sequence[str], dtype: Any) -> How:
    """Return how pixels of a raster become coarser ones."""
    return "nearest" if is_labels(dims, dtype) else "mean"


def _place(to: Any, number: int) -> Path:
    path = Path(to)
    path.mkdir(parents=True, exist_ok=True)
    return path / str(number)
