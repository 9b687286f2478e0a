"""Elements of SpatialData: known by what they carry, made and checked by its own models.

``spatialdata`` is imported only where an object of it was given.
"""

from collections.abc import Sequence
from typing import Any

from barrow.errors import InputError
from barrow.fields.spatial.raster import TRANSFORM


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
