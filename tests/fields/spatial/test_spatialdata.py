"""Elements of SpatialData in, valid elements out: checked by its own models."""

import numpy as np
import pytest
import xarray

from barrow.errors import InputError
from barrow.fields.spatial import apply, as_element, map_raster, segment
from barrow.fields.spatial.tissue import Tissue

spatialdata = pytest.importorskip("spatialdata")
models = spatialdata.models
transformations = spatialdata.transformations


@pytest.fixture
def slide():
    source = Tissue(200, 240).image()
    return source.read(source.everything)


@pytest.fixture
def scale():
    return transformations.Scale([0.5, 0.5], axes=("y", "x"))


def parse(slide, scale, **options):
    return models.Image2DModel.parse(
        slide, dims=("c", "y", "x"), c_coords=["dapi", "marker"],
        transformations={"global": scale}, **options,
    )  # fmt: skip


def brighten(block):
    return block + 1


def matrix(element, dims=("y", "x")):
    found = transformations.get_transformation(element, "global")
    return found.to_affine_matrix(input_axes=dims, output_axes=dims)


def test_an_image_comes_back_as_a_valid_image(slide, scale):
    found = map_raster(parse(slide, scale), brighten, quiet=True)
    models.Image2DModel().validate(found)
    assert models.get_channel_names(found) == ["dapi", "marker"]
    np.testing.assert_array_equal(matrix(found), np.diag([0.5, 0.5, 1]))
    np.testing.assert_array_equal(found.compute(), slide + 1)


def test_all_scales_come_back_valid(slide, scale):
    found = map_raster(parse(slide, scale, scale_factors=[2, 2]), brighten, quiet=True)
    models.Image2DModel().validate(found)
    assert list(found.children) == ["scale0", "scale1", "scale2"]
    assert found["scale2"]["image"].shape == (2, 50, 60)
    coarse = transformations.get_transformation(found["scale2"]["image"], "global")
    np.testing.assert_allclose(
        coarse.to_affine_matrix(("y", "x"), ("y", "x")), np.diag([2.0, 2.0, 1])
    )


def test_transformations_follow_a_change_of_pixels(slide, scale):
    image = parse(slide, scale)
    found = map_raster(image, lambda x: x[:, ::2, ::4], quiet=True)
    models.Image2DModel().validate(found)
    np.testing.assert_allclose(matrix(found), np.diag([1.0, 2.0, 1]))
    np.testing.assert_array_equal(matrix(image), np.diag([0.5, 0.5, 1]))


def test_labels_of_an_image_are_valid_labels(slide, scale):
    found = segment(parse(slide, scale), channel="dapi", chunks=100, quiet=True)
    models.Labels2DModel().validate(found.labels)
    np.testing.assert_array_equal(matrix(found.labels), np.diag([0.5, 0.5, 1]))


def test_an_object_in_gives_an_object_out(slide, scale, tmp_path):
    given = spatialdata.SpatialData(images={"image": parse(slide, scale, scale_factors=[2])})
    found = apply(given, "image", brighten, name="brighter", quiet=True)
    assert set(found.images) == {"image", "brighter"}
    assert set(given.images) == {"image"}
    found.write(tmp_path / "out.zarr")
    again = spatialdata.read_zarr(tmp_path / "out.zarr")
    np.testing.assert_array_equal(again["brighter"]["scale0"]["image"].values, slide + 1)
    with pytest.raises(InputError, match="holds \\['image'\\]"):
        apply(given, "picture", brighten)


def test_a_stored_image_becomes_an_element(slide, tmp_path):
    image = xarray.DataArray(slide, dims=("c", "y", "x"), attrs={"scale": {"y": 0.5, "x": 0.5}})
    map_raster(image, brighten, to=tmp_path / "b.zarr", quiet=True)
    found = as_element(tmp_path / "b.zarr", scale_factors=[2])
    models.Image2DModel().validate(found)
    np.testing.assert_array_equal(matrix(found), np.diag([0.5, 0.5, 1]))
    np.testing.assert_array_equal(found["scale0"]["image"].values, slide + 1)
