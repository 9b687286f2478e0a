"""Rasters: images (c, [z], y, x) and labels ([z], y, x), whatever they were given as.

Opens them as sources with named dimensions; nothing is read. What a raster says about
itself (names of channels, coordinates, transformations) travels with the source.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from barrow.errors import InputError
from barrow.fields.spatial.ome import describe_image
from barrow.model.source import Labels, Source
from barrow.sources.opening import open_source

AXES = {2: ("y", "x"), 3: ("c", "y", "x"), 4: ("c", "z", "y", "x")}
"""How the dimensions of a bare array are named."""
TRANSFORM = "transform"
"""The attribute under which SpatialData keeps transformations."""

Kind = Literal["array", "labelled", "lazy", "tree"]


@dataclass(frozen=True)
class Raster:
    """An image or labels, opened but not read."""

    source: Source
    """The finest scale."""
    given: Kind
    """What it was: a bare array, a DataArray, a DataArray that is not computed yet, or scales."""
    factors: tuple[Mapping[str, int], ...] = ()
    """Of each coarser scale: by how much it is coarser than the one before."""

    @property
    def is_labels(self) -> bool:
        """Whether the values are names of objects."""
        return is_labels(self.source.dims, self.source.dtype)

    @property
    def spatial(self) -> tuple[str, ...]:
        """The dimensions of space, in storage order."""
        return spatial_dims(self.source.dims)

    @property
    def channels(self) -> list[Any] | None:
        """Names of the channels; None if there is no such dimension."""
        if "c" not in self.source.lengths:
            return None
        return channels_of(self.source)


def open_raster(data: Any) -> Raster:
    """Return a raster of any kind.

    Parameters
    ----------
    data
        A NumPy array (y, x), (c, y, x) or (c, z, y, x); a DataArray or an element of
        SpatialData, also of several scales; the path of an OME-Zarr or TIFF file; or anything
        that :func:`barrow.open` opens, with dimensions named so.

    Examples
    --------
    >>> open_raster(np.zeros((3, 20, 30))).source.lengths
    {'c': 3, 'y': 20, 'x': 30}
    """
    if isinstance(data, Raster):
        return data
    if hasattr(data, "children") and hasattr(data, "ds"):
        return _open_tree(data)
    if isinstance(data, (str, os.PathLike)):
        source = _open_file(data)
        return Raster(_check(source), "labelled" if source.labels else "array")
    dims = AXES.get(data.ndim) if isinstance(data, np.ndarray) else None
    source = open_source(data, dims=dims)
    if not source.has_names and len(source.shape) in AXES:
        source = rename(source, AXES[len(source.shape)])
    if source.labels is None:
        return Raster(_check(source), "array")
    is_lazy = getattr(data, "chunks", None) is not None
    return Raster(_check(source), "lazy" if is_lazy else "labelled")


def spatial_dims(dims: Sequence[str]) -> tuple[str, ...]:
    """Return the dimensions of space.

    Examples
    --------
    >>> spatial_dims(("c", "y", "x"))
    ('y', 'x')
    """
    return tuple(dim for dim in dims if dim in ("z", "y", "x"))


def is_labels(dims: Sequence[str], dtype: np.dtype) -> bool:
    """Return whether an array of these dimensions holds names of objects."""
    return "c" not in dims and np.dtype(dtype).kind in "iub"


def channels_of(source: Source) -> list[Any]:
    """Return the names of the channels of an image, or their numbers."""
    coords = source.labels.coords if source.labels is not None else {}
    if "c" in coords:
        return list(np.asarray(coords["c"].values).tolist())
    return list(range(source.lengths["c"]))


def rename(source: Source, dims: Sequence[str]) -> Source:
    """Return a source whose dimensions have other names."""
    lengths = dict(zip(dims, source.shape, strict=True))
    grain = dict(zip(dims, source.grain.values(), strict=True))
    return replace(source, lengths=lengths, grain=grain, has_names=True)


def pick_channel(source: Source, channel: Any) -> int:
    """Return the number of a channel that is given by its name or number."""
    names = channels_of(source)
    if channel in names:
        return names.index(channel)
    is_number = isinstance(channel, (int, np.integer)) and not isinstance(channel, bool)
    if is_number and -len(names) <= channel < len(names):
        return int(channel) % len(names)
    raise InputError(f"channel={channel!r} is not in the image, which has {names}.")


def _check(source: Source) -> Source:
    dims = source.dims
    if "y" not in dims or "x" not in dims or not set(dims) <= {"c", "z", "y", "x"}:
        raise InputError(
            f"'{source.name}' has the dimensions {dims}. A raster has y and x, and may have c and "
            "z: name them so, for example barrow.open(data, dims=('z', 'y', 'x'))."
        )
    return source


def _open_tree(tree: Any) -> Raster:
    """Return the finest scale of a DataTree, and how coarse the others are."""
    levels = [_only_variable(child.ds, name) for name, child in tree.children.items()]
    if not levels:
        raise InputError("The DataTree has no scales. Give one of its DataArrays.")
    source = _check(open_source(levels[0]))
    factors = []
    for fine, coarse in pairwise(levels):
        factors.append(
            {dim: round(fine.sizes[dim] / coarse.sizes[dim]) for dim in spatial_dims(fine.dims)}
        )
    return Raster(source, "tree", tuple(factors))


def _only_variable(dataset: Any, name: str) -> Any:
    found = list(dataset.data_vars)
    if len(found) != 1:
        raise InputError(f"Scale {name!r} holds {found}, where one image is expected.")
    return dataset[found[0]]


def _open_file(path: str | os.PathLike[str]) -> Source:
    """Return an image in a file, with what the file says about its channels and pixels."""
    source = _drop_time(open_source(path))
    described = describe_image(path)
    if described is None:
        return source
    import xarray

    names = described.channels
    has_names = names is not None and len(names) == source.lengths.get("c")
    coords = xarray.Dataset(coords={"c": ("c", names)}) if has_names else xarray.Dataset()
    return replace(source, labels=Labels(source.name, coords, described.attributes()))


def _drop_time(source: Source) -> Source:
    """Return an image without a dimension that has a length of one and no meaning in space."""
    from barrow.fields.spatial.readers import DroppedReader

    odd = [d for d, n in source.lengths.items() if d not in ("c", "z", "y", "x") and n == 1]
    if odd and len(odd) < len(source.dims):
        reader = DroppedReader(source.read, tuple(d in odd for d in source.dims))
        lengths = {d: n for d, n in source.lengths.items() if d not in odd}
        grain = {d: n for d, n in source.grain.items() if d not in odd}
        source = replace(source, lengths=lengths, grain=grain, read=reader)
    if "s" in source.lengths and "c" not in source.lengths:
        # Samples of a pixel are channels that lie last.
        from barrow.fields.spatial.readers import ChannelsFirstReader

        dims = ("c", *(d for d in source.dims if d != "s"))
        lengths = {d: source.lengths["s" if d == "c" else d] for d in dims}
        grain = {d: source.grain["s" if d == "c" else d] for d in dims}
        axis = source.dims.index("s")
        source = replace(
            source, lengths=lengths, grain=grain, read=ChannelsFirstReader(source.read, axis)
        )
    return source
