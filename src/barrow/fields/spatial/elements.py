"""Elements of SpatialData: known by what they carry, made and checked by its own models.

``spatialdata`` is imported only where an object of it was given.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barrow.errors import InputError
from barrow.fields.spatial.raster import TRANSFORM, open_raster, spatial_dims


def is_element(data: Any) -> bool:
    """Return whether a DataArray is an element of SpatialData: it has transformations."""
    return bool(getattr(data, "attrs", {}).get(TRANSFORM))


def model_of(dims: Sequence[str]) -> Any:
    """Return the model of SpatialData for a raster of these dimensions."""
    try:
        from spatialdata import models
    except ImportError:
        raise InputError(
            "This needs the package spatialdata: pip install 'barrow[spatialdata]'."
        ) from None
    kind = "Image" if "c" in dims else "Labels"
    return getattr(models, f"{kind}{3 if 'z' in dims else 2}DModel")


def as_element(data: Any, *, scale_factors: Sequence[int] | None = None) -> Any:
    """Return a raster of any kind as an element of SpatialData, lazy and checked.

    Parameters
    ----------
    data
        An image or labels: the path of an OME-Zarr or TIFF file, a DataArray, an array. The size
        and place of its pixels become a transformation.
    scale_factors
        For several scales: how much coarser each is than the one before.
    """
    from barrow.fields.spatial.deferred import as_dask
    from barrow.fields.spatial.dressing import Names, dress

    source = open_raster(data).source
    dressed = dress(as_dask(source, {}), source.lengths, source.dims, source, Names())
    if not is_element(dressed):
        dressed.attrs = {TRANSFORM: {"global": _place_pixels(dressed.attrs, source.dims)}}
    return model_of(source.dims).parse(dressed, dims=source.dims, scale_factors=scale_factors)


def _place_pixels(attrs: Mapping[str, Any], dims: Sequence[str]) -> Any:
    from spatialdata.transformations import Scale, Sequence, Translation

    space = spatial_dims(dims)
    scale = Scale([attrs.get("scale", {}).get(dim, 1.0) for dim in space], axes=space)
    moved = [attrs.get("translation", {}).get(dim, 0.0) for dim in space]
    return Sequence([scale, Translation(moved, axes=space)]) if any(moved) else scale


def apply(
    sdata: Any, element: str, func: Callable[..., Any], *, name: str | None = None, **options: Any
) -> Any:
    """Apply a function to an image or to labels of a SpatialData object.

    Parameters
    ----------
    element
        The name of the raster.
    name
        What the answer is called; by default it takes the place of the raster.
    options
        Of :func:`barrow.spatial.map_raster`.

    Returns
    -------
    spatialdata.SpatialData
        A new object with all elements, and the answer, checked by its models. The one that was
        given stays as it is.
    """
    from barrow.fields.spatial.mapping import map_raster

    elements = {known: found for _, known, found in sdata.gen_elements()}
    if element not in elements:
        raise InputError(f"There is no {element!r}; the object holds {list(elements)}.")
    elements[name or element] = map_raster(elements[element], func, **options)
    return type(sdata).init_from_elements(elements, attrs=dict(sdata.attrs))
