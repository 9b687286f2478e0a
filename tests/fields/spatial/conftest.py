"""Rasters that the tests of this field share."""

import dask.array as da
import numpy as np
import pytest
import xarray

NAMES = ["dapi", "gfp", "cy5"]


@pytest.fixture
def pixels():
    """Three channels of 120 × 150 pixels."""
    return np.random.default_rng(7).integers(0, 4000, (3, 120, 150)).astype("u2")


@pytest.fixture
def image(pixels):
    """The same as SpatialData holds it: lazy, with channels, centres of pixels, attributes."""
    return xarray.DataArray(
        da.from_array(pixels, chunks=(1, 50, 60)),
        dims=("c", "y", "x"),
        coords={"c": NAMES, "y": np.arange(120) + 0.5, "x": np.arange(150) + 0.5},
        attrs={"scale": {"y": 0.5, "x": 0.5}},
    )
