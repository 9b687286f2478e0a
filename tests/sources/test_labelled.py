"""xarray objects, and labels put on again."""

import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from barrow.errors import InputError
from barrow.sources.dask_arrays import DaskReader
from barrow.sources.labelled import VariableReader, put_labels
from barrow.sources.memory import ArrayReader
from barrow.sources.opening import open_source


@pytest.fixture
def image(make_array):
    return xr.DataArray(
        make_array((12, 10)),
        dims=("y", "x"),
        coords={
            "y": np.linspace(0, 1, 12),
            "x": np.arange(10) * 2,
            "distance": (("y", "x"), np.ones((12, 10))),
            "row": ("y", np.arange(12)),
            "channel": 3,
        },
        name="image",
        attrs={"unit": "mV"},
    )


@pytest.fixture
def stored(image, tmp_path):
    path = tmp_path / "slide.zarr"
    image.to_dataset().to_zarr(path, consolidated=False, encoding={"image": {"chunks": (5, 4)}})
    return path


def test_names_and_attributes_are_kept(image, check_blocks):
    source = open_source(image)
    assert (source.name, source.dims, source.has_names) == ("image", ("y", "x"), True)
    assert source.labels.name == "image"
    assert source.labels.attrs == {"unit": "mV"}
    assert isinstance(source.read, ArrayReader)
    check_blocks(source, image.values)


def test_dask_arrays_beneath_are_read_as_such(image, check_blocks):
    source = open_source(image.chunk(y=5, x=4))
    assert isinstance(source.read, DaskReader)
    assert source.grain == {"y": 5, "x": 4}
    check_blocks(source, image.values)


def test_a_store_opened_with_dask_is_read_elsewhere(image, stored, read_elsewhere, check_blocks):
    source = open_source(xr.open_zarr(stored, consolidated=False)["image"])
    assert isinstance(source.read, DaskReader)
    check_blocks(source, image.values, count=3)
    ranges = ((3, 8), (2, 9))
    block = read_elsewhere(source.read.only(ranges), ranges)
    assert np.array_equal(block, image.values[3:8, 2:9])


def test_a_variable_in_its_file_is_read_by_blocks_and_not_cached(image, stored, check_blocks):
    lazy = xr.open_zarr(stored, chunks=None, consolidated=False)["image"]
    source = open_source(lazy)
    assert isinstance(source.read, VariableReader)
    assert source.grain == {"y": 5, "x": 4}
    check_blocks(source, image.values)
    assert not lazy.variable._in_memory
    assert not source.read.variable._in_memory


def test_values_that_the_user_loads_do_not_travel(stored):
    lazy = xr.open_zarr(stored, chunks=None, consolidated=False)["image"]
    reader = open_source(lazy).read
    lazy.load()
    assert not reader.variable._in_memory
    assert not pickle.loads(pickle.dumps(reader)).variable._in_memory
    assert isinstance(open_source(lazy).read, ArrayReader)


def test_a_variable_in_its_file_is_read_elsewhere(image, stored, read_elsewhere):
    lazy = xr.open_dataset(stored, engine="zarr", chunks=None, consolidated=False)["image"][2:, ::2]
    source = open_source(lazy)
    block = read_elsewhere(source.read, ((1, 7), (0, 3)))
    assert np.array_equal(block, image.values[2:, ::2][1:7, 0:3])


def test_decoded_variables_are_read_decoded(tmp_path, check_blocks):
    values = xr.DataArray([1.5, np.nan, 2.5], dims="t", name="v")
    encoding = {"v": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}}
    values.to_dataset().to_zarr(tmp_path / "a.zarr", consolidated=False, encoding=encoding)
    lazy = xr.open_zarr(tmp_path / "a.zarr", chunks=None, consolidated=False)["v"]
    check_blocks(open_source(lazy), values.values.astype(lazy.dtype))


def test_the_identity_follows_store_variable_and_cut(image, stored):
    def identify(cut=slice(None)):
        return open_source(
            xr.open_zarr(stored, chunks=None, consolidated=False)["image"][cut]
        ).read.identity()

    first = identify()
    assert first == identify()
    assert first != identify(slice(1, None))
    assert identify(slice(0, 3)) != identify(slice(1, 4))
    (image + 1).to_dataset(name="image").to_zarr(stored, mode="w", consolidated=False)
    assert identify() != first


def test_the_one_variable_of_a_dataset_is_taken(image, check_blocks):
    check_blocks(open_source(image.to_dataset()), image.values)


def test_several_variables_ask_for_a_choice(image, check_blocks):
    dataset = xr.Dataset({"image": image, "mask": image > 3})
    with pytest.raises(InputError, match=r"holds 'image', 'mask'. Choose one with name="):
        open_source(dataset)
    with pytest.raises(InputError, match="no variable 'masc'; it holds 'image', 'mask'"):
        open_source(dataset, name="masc")
    check_blocks(open_source(dataset, name="mask"), image.values > 3)


def test_new_names_for_named_dimensions_are_refused(image):
    assert open_source(image, dims=("y", "x")).dims == ("y", "x")
    with pytest.raises(InputError, match="rename the data first"):
        open_source(image, dims=("height", "width"))
    with pytest.raises(InputError, match="use text"):
        open_source(xr.DataArray(np.zeros(3), dims=[0]))


def test_a_datatree_is_refused():
    with pytest.raises(InputError, match="DataTree is not an array"):
        open_source(xr.DataTree())


def test_labels_come_back_as_they_were(image):
    labels = open_source(image).labels
    answer = put_labels(image.values, {"y": 12, "x": 10}, {"y", "x"}, labels)
    xr.testing.assert_identical(answer, image)


def test_coordinates_along_changed_dimensions_are_dropped(image):
    labels = open_source(image).labels
    answer = put_labels(np.zeros((5, 12)), {"k": 5, "y": 12}, {"y"}, labels)
    assert set(answer.coords) == {"y", "row", "channel"}
    assert answer.dims == ("k", "y")
    assert (answer.name, answer.attrs) == ("image", {"unit": "mV"})


def test_a_dask_answer_stays_a_dask_array(image):
    labels = open_source(image).labels
    answer = put_labels(da.zeros((12, 10)), {"y": 12, "x": 10}, {"y", "x"}, labels)
    assert isinstance(answer.data, da.Array)


def test_an_answer_without_dimensions_keeps_scalar_labels(image):
    answer = put_labels(np.array(3.0), {}, set(), open_source(image).labels)
    assert set(answer.coords) == {"channel"}


def test_indexes_of_several_levels_survive():
    index = pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=("letter", "number"))
    coords = xr.Coordinates.from_pandas_multiindex(index, "cell")
    table = xr.DataArray(np.zeros((4, 2)), dims=("cell", "gene"), coords=coords)
    labels = open_source(table).labels
    lengths = {"cell": 4, "gene": 2}
    xr.testing.assert_identical(put_labels(table.values, lengths, set(lengths), labels), table)
    assert not put_labels(table.values, lengths, {"gene"}, labels).coords


def test_labels_hold_none_of_the_values(make_array):
    source = open_source(xr.DataArray(make_array((500, 500)), dims=("y", "x")))
    assert len(pickle.dumps(source.labels)) < 3000
