"""Filters of scipy.ndimage and scikit-image with a halo give what they give for the whole."""

import numpy as np
import pytest
from scipy import ndimage

from barrow.fields.spatial import background, map_raster, normalize, processing, register, stats
from barrow.fields.spatial.tissue import Tissue

MODES = ["reflect", "mirror", "nearest", "constant", "wrap"]
FILTERS = {
    "gaussian": lambda x, mode: ndimage.gaussian_filter(x, 1.5, mode=mode, truncate=4),
    "median": lambda x, mode: ndimage.median_filter(x, 5, mode=mode),
    "maximum": lambda x, mode: ndimage.maximum_filter(x, 7, mode=mode),
    "opening": lambda x, mode: ndimage.grey_opening(x, (3, 3), mode=mode),
    "sobel": lambda x, mode: ndimage.sobel(x, mode=mode),
}


@pytest.fixture(scope="module")
def plane():
    return np.random.default_rng(4).random((70, 90)).astype("f4")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_of_scipy_is_the_same_bit_for_bit(name, mode, plane):
    func = FILTERS[name]
    border = "wrap" if mode == "wrap" else None
    found = map_raster(
        plane, func, {"mode": mode}, depth=8, chunks=(32, 41), border=border, cluster=False,
        quiet=True,
    )  # fmt: skip
    np.testing.assert_array_equal(found, func(plane, mode))


@pytest.mark.parametrize(("border", "mode"), [(m, m) for m in MODES[:3]] + [(0.0, "constant")])
def test_a_padded_border_is_that_of_scipy(border, mode, plane):
    func = FILTERS["gaussian"]
    found = map_raster(
        plane, func, {"mode": "reflect"}, depth=8, chunks=30, border=border, cluster=False,
        quiet=True,
    )  # fmt: skip
    np.testing.assert_array_equal(found, func(plane, mode))


def test_filters_of_scikit_image_are_the_same(plane):
    filters = pytest.importorskip("skimage.filters")
    for func, kwargs in ((filters.gaussian, {"sigma": 2}), (filters.sobel, {})):
        found = map_raster(
            plane, func, kwargs, depth=10, chunks=30, border=None, cluster=False, quiet=True
        )
        np.testing.assert_allclose(found, func(plane, **kwargs), rtol=1e-6, atol=1e-7)


def test_background_is_that_of_the_whole_image(plane):
    image = np.stack([plane, 2 * plane])
    found = background(image, 9, chunks=30, cluster=False, quiet=True)
    wanted = [ndimage.white_tophat(channel, 9) for channel in image]
    np.testing.assert_array_equal(found, wanted)


def test_blocks_are_scaled_by_the_whole_image():
    image = np.random.default_rng(6).integers(0, 1000, (2, 64, 64)).astype("u2")
    found = normalize(image, 0, 100, chunks=20, cluster=False, quiet=True)
    low = image.min(axis=(1, 2), keepdims=True)
    high = image.max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(found, (image - low) / (high - low), rtol=1e-5)


def test_numbers_of_an_image_are_those_of_numpy():
    image = np.random.default_rng(6).normal(5, 2, (2, 64, 64))
    found = stats(image, quiet=True)
    np.testing.assert_allclose(found["mean"], image.mean(axis=(1, 2)))
    np.testing.assert_allclose(found["std"], image.std(axis=(1, 2)))
    np.testing.assert_array_equal(found["max"], image.max(axis=(1, 2)))


def test_a_shift_of_large_images_is_found_to_the_pixel(monkeypatch):
    monkeypatch.setattr(processing, "SEARCHED", 128)
    source = Tissue(500, 540, seed=2).image()
    fixed = source.read(((0, 1), (60, 440), (60, 480)))
    moving = source.read(((0, 1), (29, 409), (77, 497)))
    assert register(fixed, moving, quiet=True) == {"y": 31, "x": -17}
