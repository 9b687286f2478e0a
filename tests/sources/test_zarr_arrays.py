"""Zarr arrays, groups and OME-Zarr images."""

import pickle
import threading

import numpy as np
import pytest
import zarr

from barrow.errors import InputError, TravelError
from barrow.sources.opening import open_source
from barrow.sources.zarr_arrays import StoreReader, ZarrReader


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("shape", [(20, 30), (7,), ()])
def test_blocks_are_slices_of_the_array(tmp_path, make_array, check_blocks, version, shape):
    array = make_array(shape)
    stored = zarr.create_array(tmp_path / "a.zarr", data=array, zarr_format=version)
    for given in (tmp_path / "a.zarr", stored):
        source = open_source(given)
        assert source.name == "a"
        assert not source.has_names
        assert isinstance(source.read, ZarrReader)
        check_blocks(source, array, count=5)


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
def test_every_dtype_is_read_as_it_is(tmp_path, make_array, check_blocks, dtype):
    array = make_array((4, 9), dtype)
    zarr.create_array(tmp_path / "a.zarr", data=array, chunks=(2, 5), zarr_format=2)
    check_blocks(open_source(tmp_path / "a.zarr"), array, count=3)


def test_the_grain_is_the_chunk_even_inside_shards(tmp_path):
    plain = zarr.create_array(tmp_path / "a", shape=(100, 90), chunks=(10, 30), dtype="f4")
    sharded = zarr.create_array(
        tmp_path / "b", shape=(100, 90), chunks=(10, 30), shards=(50, 90), dtype="f4"
    )
    for array in (plain, sharded):
        assert open_source(array, dims=("y", "x")).grain == {"y": 10, "x": 30}


def test_names_of_dimensions_are_found(tmp_path):
    three = zarr.create_array(
        tmp_path / "a", shape=(2, 3), dtype="f4", dimension_names=("height", "width")
    )
    two = zarr.create_array(tmp_path / "b", shape=(2, 3), dtype="f4", zarr_format=2)
    two.attrs["_ARRAY_DIMENSIONS"] = ["height", "width"]
    for array in (three, two):
        assert open_source(array).dims == ("height", "width")
        assert open_source(array).has_names
        assert open_source(array, dims=("y", "x")).dims == ("y", "x")
    half = zarr.create_array(
        tmp_path / "c", shape=(2, 3), dtype="f4", dimension_names=("height", None)
    )
    assert open_source(half).dims == ("dim_0", "dim_1")


def test_a_group_of_one_array_needs_no_name(tmp_path, make_array, check_blocks):
    array = make_array((6, 8))
    group = zarr.create_group(tmp_path / "run.zarr")
    group.create_array("image", data=array, dimension_names=("y", "x"))
    # A coordinate, as xarray writes it, is not what is meant.
    group.create_array("y", data=np.arange(6), dimension_names=("y",))
    for given in (tmp_path / "run.zarr", group):
        assert open_source(given).name == "image"
        check_blocks(open_source(given), array, count=3)


def test_a_group_of_several_arrays_asks_for_a_choice(tmp_path, make_array, check_blocks):
    array = make_array((6, 8))
    group = zarr.create_group(tmp_path / "run.zarr")
    group.create_array("raw", data=array)
    group.create_array("deep/mask", data=array > 9)
    group.create_array("other", data=array)
    with pytest.raises(InputError, match=r"holds 'deep', 'other', 'raw'. Choose one"):
        open_source(tmp_path / "run.zarr")
    with pytest.raises(InputError, match=r"'rw' is not in .*holds 'deep', 'other', 'raw'"):
        open_source(tmp_path / "run.zarr", name="rw")
    check_blocks(open_source(tmp_path / "run.zarr", name="raw"), array, count=3)
    check_blocks(open_source(group, name="/deep/mask"), array > 9, count=3)
    check_blocks(open_source(group, name="deep"), array > 9, count=3)
    check_blocks(open_source(tmp_path / "run.zarr" / "raw"), array, count=3)


@pytest.fixture(params=["0.4", "0.5"])
def slide(request, tmp_path, make_array):
    group = zarr.create_group(
        tmp_path / "slide.ome.zarr", zarr_format=2 if request.param == "0.4" else 3
    )
    levels = [make_array((2, 32, 24)), make_array((2, 16, 12), seed=1)]
    for number, level in enumerate(levels):
        group.create_array(f"s{number}", data=level, chunks=(1, 16, 12))
    axes = [{"name": "c", "type": "channel"}, {"name": "y"}, {"name": "x"}]
    image = {"axes": axes, "datasets": [{"path": "s0"}, {"path": "s1"}], "version": request.param}
    described = {"multiscales": [image]}
    group.attrs.update(described if request.param == "0.4" else {"ome": described})
    return tmp_path / "slide.ome.zarr", levels


def test_an_image_is_opened_at_its_finest_level(slide, check_blocks):
    path, levels = slide
    source = open_source(path)
    assert (source.name, source.dims, source.has_names) == ("slide", ("c", "y", "x"), True)
    assert source.grain == {"c": 1, "y": 16, "x": 12}
    check_blocks(source, levels[0], count=3)


def test_another_level_is_chosen_by_name_or_number(slide, check_blocks):
    path, levels = slide
    for name in ("1", "s1"):
        check_blocks(open_source(path, name=name), levels[1], count=3)
    with pytest.raises(InputError, match=r"'2' is no level .*: it has 's0', 's1'"):
        open_source(path, name="2")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_image_written_by_ome_zarr_is_opened(tmp_path, make_array, check_blocks):
    from ome_zarr.writer import write_image

    array = make_array((40, 30))
    group = zarr.open_group(tmp_path / "cells.zarr", mode="w")
    write_image(array, group, axes="yx")
    source = open_source(tmp_path / "cells.zarr")
    assert source.dims == ("y", "x")
    check_blocks(source, array, count=3)


def test_an_array_is_read_elsewhere(tmp_path, make_array, read_elsewhere):
    array = make_array((40, 50), "f4")
    zarr.create_array(tmp_path / "a.zarr", data=array, chunks=(10, 10))
    reader = open_source(tmp_path / "a.zarr").read
    assert len(pickle.dumps(reader)) < 500
    assert np.array_equal(read_elsewhere(reader, ((3, 25), (5, 36))), array[3:25, 5:36])


def test_an_array_made_anew_is_not_confused_with_the_old_one(tmp_path, check_blocks):
    for array in (np.arange(10), np.arange(20.0)):
        zarr.create_array(tmp_path / "a.zarr", data=array, overwrite=True)
        check_blocks(open_source(tmp_path / "a.zarr"), array, count=3)


def test_threads_can_read_together(tmp_path, make_array):
    array = make_array((64, 64))
    zarr.create_array(tmp_path / "a.zarr", data=array, chunks=(16, 16))
    reader, wrong = open_source(tmp_path / "a.zarr").read, []

    def read(row):
        if not np.array_equal(reader(((row, row + 8), (0, 64))), array[row : row + 8]):
            wrong.append(row)

    threads = [threading.Thread(target=read, args=(row,)) for row in range(0, 56, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_array_in_memory_is_read_here_and_shared(make_array, check_blocks, read_elsewhere):
    array = make_array((20, 30))
    held = zarr.create_array(zarr.storage.MemoryStore(), data=array, chunks=(6, 7))
    source = open_source(held)
    check_blocks(source, array)
    ranges = ((3, 15), (5, 6))
    assert np.array_equal(read_elsewhere(source.read.shared(), ranges), array[3:15, 5:6])
    assert np.array_equal(read_elsewhere(source.read.only(ranges), ranges), array[3:15, 5:6])
    with pytest.raises(TravelError, match="memory of this process"):
        pickle.dumps(source.read)


def test_other_stores_find_their_own_way(tmp_path, make_array, check_blocks, read_elsewhere):
    array = make_array((20, 30))
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        zarr.create_array(store, data=array)
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="r") as store:
        source = open_source(zarr.open_array(store, mode="r"))
        assert isinstance(source.read, StoreReader)
        check_blocks(source, array, count=3)
        assert np.array_equal(read_elsewhere(source.read, ((0, 2), (0, 3))), array[:2, :3])


def test_an_address_without_an_array_is_refused():
    with pytest.raises(InputError, match=r"memory://nothing.* cannot be opened as Zarr"):
        open_source("memory://nothing/here.zarr")


def test_the_identity_follows_the_chunks_and_the_metadata(tmp_path):
    stored = zarr.create_array(tmp_path / "a.zarr", data=np.arange(10), chunks=(5,))
    reader = open_source(stored).read
    first = reader.identity()
    assert reader.identity() == first
    stored[7] = 99
    second = reader.identity()
    assert second != first
    stored.attrs["unit"] = "mV"
    assert reader.identity() != second
