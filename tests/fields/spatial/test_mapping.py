"""Functions over rasters of every kind, and the traps that others have."""

import dask.array as da
import numpy as np
import pytest
import tifffile
import xarray
import zarr
from scipy import ndimage

import barrow
from barrow.errors import InputError, StepError
from barrow.fields.spatial import map_raster, pyramid


def brighten(block, by=1):
    return block + by


def blur(block):
    return ndimage.gaussian_filter(block.astype("f4"), (0, 2, 2))


@pytest.mark.parametrize("kind", ["numpy", "labelled", "lazy"])
def test_an_answer_is_of_the_kind_that_was_given(kind, pixels, image):
    data = {"numpy": pixels, "labelled": image.compute(), "lazy": image}[kind]
    found = map_raster(data, brighten, {"by": 3}, quiet=True)
    assert isinstance(found, np.ndarray if kind == "numpy" else xarray.DataArray)
    np.testing.assert_array_equal(np.asarray(found), pixels + 3)
    if kind != "numpy":
        assert found.coords.equals(image.coords)
        assert found.attrs == image.attrs
    assert (getattr(found, "chunks", None) is not None) == (kind == "lazy")


def test_nothing_is_computed_before_values_are_asked_for(pixels):
    reads = []

    def watched(block, block_info=None):
        reads.append(1)
        return block

    lazy = da.from_array(pixels, chunks=(3, 10, 10)).map_blocks(watched, dtype=pixels.dtype)
    mapped = map_raster(xarray.DataArray(lazy, dims=("c", "y", "x")), brighten, quiet=True)
    assert len(reads) < lazy.npartitions / 2
    assert mapped.dtype == pixels.dtype
    np.testing.assert_array_equal(mapped.compute(), pixels + 1)


def test_two_calls_are_one_run(image, pixels):
    first = map_raster(image, brighten, quiet=True)
    second = map_raster(first, np.sqrt, quiet=True)
    assert [step.name for step in second._work.steps] == ["brighten", "sqrt"]
    np.testing.assert_allclose(second.compute(), np.sqrt(pixels + 1))
    np.testing.assert_allclose(second.values, np.sqrt(pixels + 1))


def test_other_libraries_use_a_lazy_answer_as_any_dask_array(image, pixels):
    mapped = map_raster(image, brighten, quiet=True)
    np.testing.assert_array_equal(mapped.data[1, 5:9, ::3].compute(), pixels[1, 5:9, ::3] + 1)
    part = mapped.sel(c="gfp", y=slice(0, 10))
    np.testing.assert_array_equal(part.compute(), pixels[1, :10] + 1)
    assert int((mapped - image).max()) == 1


def test_a_lazy_answer_can_be_loaded_where_it_is(image, pixels):
    mapped = map_raster(image, brighten, quiet=True)
    assert mapped.load() is mapped
    assert mapped.chunks is None
    np.testing.assert_array_equal(mapped.values, pixels + 1)


@pytest.mark.parametrize("depth", [8, (8, 8), (0, 8, 8), {"y": 8, "x": 8}, {1: 8, 2: 8}])
def test_depth_is_for_dimensions_of_space(depth, pixels):
    found = map_raster(pixels, blur, depth=depth, chunks=40, quiet=True)
    np.testing.assert_array_equal(found, blur(pixels))


def test_depth_of_channels_is_one_error(pixels):
    with pytest.raises(InputError, match="neighbours of channels"):
        map_raster(pixels, blur, depth=(1, 8, 8))


def test_an_argument_called_dtype_reaches_the_function(pixels):
    def cast(block, dtype):
        return block.astype(dtype)

    assert map_raster(pixels, cast, {"dtype": "f4"}, quiet=True).dtype == np.float32


def test_the_function_never_meets_an_empty_array(image):
    def careful(block):
        assert block.size
        return block / block.max()

    map_raster(image, careful, quiet=True).compute()


def test_blocks_hold_all_channels(image, pixels):
    def centre(block):
        return block - block.mean(axis=0)

    found = map_raster(image, centre, quiet=True)
    np.testing.assert_allclose(found.compute(), pixels - pixels.mean(axis=0))


def test_given_chunks_are_the_blocks_that_the_function_sees(pixels):
    def size(block):
        return np.full(block.shape, block[0].size)

    found = map_raster(pixels, size, chunks=(3, 50, 60), quiet=True)
    assert found[0, 0, 0] == 50 * 60
    assert found[0, -1, -1] == 20 * 30


def test_chunks_of_unequal_length_are_refused_and_not_changed(pixels):
    with pytest.raises(InputError, match="unequal length"):
        map_raster(pixels, brighten, chunks=((3,), (50, 20, 50), (150,)))


def test_blocks_of_unequal_length_in_the_data_are_read_as_they_are(pixels):
    lazy = da.from_array(pixels, chunks=((3,), (50, 7, 63), (100, 50)))
    mapped = map_raster(xarray.DataArray(lazy, dims=("c", "y", "x")), brighten, quiet=True)
    np.testing.assert_array_equal(mapped.compute(), pixels + 1)
    assert lazy.chunks == ((3,), (50, 7, 63), (100, 50))


def test_the_input_is_never_changed(pixels):
    def in_place(block):
        block += 1
        return block

    before = pixels.copy()
    np.testing.assert_array_equal(map_raster(pixels, in_place, quiet=True), before + 1)
    np.testing.assert_array_equal(pixels, before)


def test_not_blockwise_means_one_call_with_everything(pixels):
    shapes = set()

    def note(block):
        shapes.add(block.shape)
        return block - block.mean()

    np.testing.assert_allclose(
        map_raster(pixels, note, blockwise=False, chunks=10, cluster=False, quiet=True),
        pixels - pixels.mean(),
    )
    assert shapes == {pixels.shape}


def test_channels_can_change_and_get_names(image, pixels):
    def two(block):
        return block[:2]

    found = map_raster(image, two, c_coords=["a", "b"], quiet=True)
    assert found.coords["c"].values.tolist() == ["a", "b"]
    np.testing.assert_array_equal(found.compute(), pixels[:2])
    with pytest.raises(InputError, match="names 3 channels; there are 2"):
        map_raster(image, two, c_coords=["a", "b", "c"])


def test_dimensions_can_be_dropped(image, pixels):
    def project(block):
        return block.max(axis=0).astype("f4")

    found = map_raster(image, project, dims=("y", "x"), quiet=True)
    assert found.dims == ("y", "x")
    np.testing.assert_array_equal(found.compute(), pixels.max(axis=0))
    with pytest.raises(InputError, match="has 3 names"):
        map_raster(image, project, dims=("c", "y", "x"))


def test_coordinates_and_pixel_sizes_follow_a_change_of_shape(image):
    def half(block):
        return block[:, ::2, ::3]

    found = map_raster(image, half, quiet=True)
    assert found.coords["y"].values[:3].tolist() == [1.0, 3.0, 5.0]
    assert found.coords["x"].values[:2].tolist() == [1.5, 4.5]
    assert found.attrs["scale"] == {"y": 1.0, "x": 1.5}
    assert image.attrs["scale"] == {"y": 0.5, "x": 0.5}


def test_transformations_that_are_given_are_kept(image):
    found = map_raster(image, brighten, transformations={"global": "moved"}, quiet=True)
    assert found.attrs["transform"] == {"global": "moved"}


def test_volumes_are_rasters_too():
    volume = np.random.default_rng(1).random((2, 10, 40, 50)).astype("f4")

    def smooth(block):
        return ndimage.uniform_filter(block, (1, 3, 3, 3))

    found = map_raster(volume, smooth, depth=1, chunks=(2, 10, 16, 16), quiet=True)
    np.testing.assert_allclose(found, smooth(volume), rtol=1e-6)


def test_labels_that_a_function_passes_on_keep_their_names():
    labels = np.zeros((60, 60), "u4")
    labels[10:20, 5:55] = 70000
    labels[30:50, 10:30] = 3

    def drop_small_numbers(block):
        return np.where(block > 10, block, 0)

    found = map_raster(labels, drop_small_numbers, chunks=16, quiet=True)
    assert np.unique(found).tolist() == [0, 70000]


def test_labels_that_a_function_invents_on_labels_are_one_error():
    labels = np.zeros((60, 60), "u4")
    labels[10:20, 5:55] = 70000

    def number(block):
        return ndimage.label(block)[0].astype("u4")

    with pytest.raises(StepError, match="made the label 1"):
        map_raster(labels, number, chunks=16, quiet=True)
    assert map_raster(labels, number, chunks=16, relabel=False, quiet=True).max() == 1


def test_all_scales_are_made_again(image, pixels, tmp_path):
    tree = pyramid(image, tmp_path / "slide.zarr", levels=3, quiet=True)
    found = map_raster(tree, brighten, quiet=True)
    assert list(found.children) == ["scale0", "scale1", "scale2"]
    np.testing.assert_array_equal(found["scale0"]["image"].values, pixels + 1)
    coarse = found["scale1"]["image"]
    np.testing.assert_array_equal(coarse, tree["scale1"]["image"].values + 1)
    assert coarse.coords["c"].values.tolist() == image.coords["c"].values.tolist()
    stored = map_raster(tree, brighten, to=tmp_path / "brighter.zarr", quiet=True)
    np.testing.assert_array_equal(stored["scale2"]["image"], found["scale2"]["image"])


def test_an_ome_zarr_image_keeps_channels_and_pixel_sizes(image, pixels, tmp_path):
    pyramid(image, tmp_path / "slide.zarr", levels=2, quiet=True)
    mapped = map_raster(tmp_path / "slide.zarr", brighten, to=tmp_path / "b.zarr", quiet=True)
    np.testing.assert_array_equal(mapped.values, pixels + 1)
    described = zarr.open_group(tmp_path / "b.zarr", mode="r").attrs["ome"]
    assert [c["label"] for c in described["omero"]["channels"]] == ["dapi", "gfp", "cy5"]
    (image,) = described["multiscales"]
    assert image["datasets"][0]["coordinateTransformations"][0]["scale"] == [1.0, 0.5, 0.5]


def test_an_ome_tiff_image_keeps_channels_and_pixel_sizes(pixels, tmp_path):
    path = tmp_path / "slide.ome.tif"
    metadata = {"axes": "CYX", "PhysicalSizeX": 0.25, "PhysicalSizeY": 0.25}
    metadata["Channel"] = {"Name": ["dapi", "gfp", "cy5"]}
    tifffile.imwrite(path, pixels, tile=(32, 32), compression="zlib", metadata=metadata)
    mapped = map_raster(path, brighten, quiet=True)
    np.testing.assert_array_equal(mapped, pixels + 1)
    assert mapped.coords["c"].values.tolist() == ["dapi", "gfp", "cy5"]
    assert mapped.attrs["scale"] == {"y": 0.25, "x": 0.25}


def test_samples_of_a_colour_tiff_are_channels(tmp_path):
    colours = np.random.default_rng(2).integers(0, 255, (40, 50, 3)).astype("u1")
    tifffile.imwrite(tmp_path / "rgb.tif", colours, photometric="rgb")
    found = map_raster(tmp_path / "rgb.tif", np.negative, quiet=True)
    np.testing.assert_array_equal(found, np.negative(np.moveaxis(colours, 2, 0)))


def test_a_stored_answer_is_taken_up_again(pixels, tmp_path):
    calls = tmp_path / "calls"

    def counted(block):
        with calls.open("a") as file:
            file.write("x")
        return block + 1

    first = map_raster(pixels, counted, to=tmp_path / "out.zarr", quiet=True)
    before = calls.stat().st_size
    again = map_raster(pixels, counted, to=tmp_path / "out.zarr", quiet=True)
    np.testing.assert_array_equal(first[:], again[:])
    assert calls.stat().st_size - before < before


def test_dimensions_that_are_no_raster_are_one_error():
    with pytest.raises(InputError, match="A raster has y and x"):
        map_raster(barrow.open(np.zeros((4, 5)), dims=("time", "x")), brighten)


def test_what_is_written_opens_with_ome_zarr(image, pixels, tmp_path):
    reader = pytest.importorskip("ome_zarr.reader")
    io = pytest.importorskip("ome_zarr.io")
    pyramid(image, tmp_path / "slide.zarr", levels=2, quiet=True)
    (node,) = reader.Reader(io.parse_url(str(tmp_path / "slide.zarr")))()
    np.testing.assert_array_equal(node.data[0].compute(), pixels)
    assert node.data[1].shape == (3, 60, 75)
    assert node.metadata["channel_names"] == ["dapi", "gfp", "cy5"]
