"""TIFF images."""

import os
import pickle
import threading

import numpy as np
import pytest
import tifffile

from barrow.errors import InputError
from barrow.sources.mapped import MappedReader
from barrow.sources.opening import open_source
from barrow.sources.tiff import TiffReader


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cells.tif"


@pytest.fixture
def segments(monkeypatch):
    """Note every tile or strip that is fetched from a file."""
    fetched = []
    fetch = tifffile.FileHandle.read

    def note(handle, *args):
        data = fetch(handle, *args)
        fetched.append(len(data))
        return data

    monkeypatch.setattr(tifffile.FileHandle, "read", note)
    return fetched


LAYOUTS = {
    "tiles": {"tile": (32, 48), "compression": "zlib"},
    "strips": {"rowsperstrip": 8, "compression": "zlib"},
    "predicted tiles": {"tile": (32, 32), "compression": "lzw", "predictor": True},
    "plain": {},
    "plain strips": {"rowsperstrip": 16},
    "plain tiles": {"tile": (32, 32)},
    "big-endian": {"byteorder": ">"},
    "big-endian tiles": {"byteorder": ">", "tile": (32, 32), "compression": "zlib"},
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("shape", [(100, 120), (3, 70, 90)])
def test_blocks_are_slices_of_the_image(path, make_array, check_blocks, layout, shape):
    array = make_array(shape)
    tifffile.imwrite(path, array, photometric="minisblack", **layout)
    source = open_source(path)
    assert source.name == "cells"
    check_blocks(source, array.astype(source.dtype))


@pytest.mark.parametrize("code", ["u1", "i2", "u4", "f4", "f8", "c8", "?"])
def test_every_dtype_is_read_as_it_is(path, make_array, check_blocks, code):
    array = make_array((40, 50), code)
    tifffile.imwrite(path, array, compression="zlib")
    check_blocks(open_source(path), array, count=3)


def test_only_the_tiles_of_a_block_are_fetched(path, make_array, segments):
    array = make_array((512, 512))
    tifffile.imwrite(path, array, tile=(64, 64), compression="zlib")
    source = open_source(path)
    assert source.grain == {"y": 64, "x": 64}
    segments.clear()
    block = source.read(((60, 130), (128, 190)))
    assert np.array_equal(block, array[60:130, 128:190])
    assert len(segments) == 3
    assert sum(segments) < array.nbytes / 10


def test_only_the_strips_of_a_block_are_fetched(path, make_array, segments):
    array = make_array((4, 256, 128))
    tifffile.imwrite(path, array, rowsperstrip=16, compression="zlib", photometric="minisblack")
    source = open_source(path)
    assert tuple(source.grain.values()) == (1, 16, 128)
    source.read(((0, 1), (0, 1), (0, 1)))
    segments.clear()
    assert np.array_equal(source.read(((2, 3), (16, 48), (5, 9))), array[2:3, 16:48, 5:9])
    assert len(segments) == 2


def test_pixels_that_lie_as_they_are_are_mapped(path, make_array):
    array = make_array((3, 40, 50), "f4")
    tifffile.imwrite(path, array, imagej=True)
    source = open_source(path)
    assert isinstance(source.read, MappedReader)
    assert np.array_equal(source.read(source.everything), array)
    assert source.grain == dict.fromkeys(source.dims, 1)


def test_axes_of_ome_become_dimensions(tmp_path, make_array, check_blocks):
    path = tmp_path / "cells.ome.tif"
    array = make_array((2, 3, 4, 20, 30))
    tifffile.imwrite(path, array, metadata={"axes": "TCZYX"}, compression="zlib")
    source = open_source(path)
    assert source.name == "cells"
    assert source.dims == ("t", "c", "z", "y", "x")
    assert source.has_names
    check_blocks(source, array)
    assert open_source(path, dims=list("abcde")).dims == tuple("abcde")


def test_colours_are_samples_and_unknown_axes_are_pages(path, make_array, check_blocks):
    array = make_array((5, 20, 30, 3), "u1")
    tifffile.imwrite(path, array, photometric="rgb", compression="zlib", metadata=None)
    source = open_source(path)
    assert source.dims == ("page", "y", "x", "s")
    check_blocks(source, array)


@pytest.fixture
def pyramid(path, make_array):
    levels = [make_array((128, 128)), make_array((64, 64), seed=1)]
    with tifffile.TiffWriter(path) as file:
        file.write(levels[0], subifds=1, tile=(32, 32), compression="zlib")
        file.write(levels[1], subfiletype=1, tile=(32, 32), compression="zlib")
        file.write(make_array((16, 16), "u1"))
    return path, levels


def test_a_pyramid_is_opened_at_any_level(pyramid, check_blocks):
    path, levels = pyramid
    check_blocks(open_source(path), levels[0])
    check_blocks(open_source(path, name="0"), levels[0])
    check_blocks(open_source(path, name="1"), levels[1])
    check_blocks(open_source(path, name="0/1"), levels[1])
    assert open_source(path, name="1/0").shape == (16, 16)


@pytest.mark.parametrize("name", ["2", "0/2", "2/0", "fine", "-1", "0/0/0"])
def test_a_level_that_is_not_there_is_refused_with_what_is(pyramid, name):
    with pytest.raises(InputError, match=r"series 0 128 × 128 with 2 levels; series 1 16 × 16"):
        open_source(pyramid[0], name=name)


def test_an_image_is_read_elsewhere(path, make_array, read_elsewhere):
    array = make_array((100, 120))
    for layout in ({}, {"tile": (32, 32), "compression": "zlib"}):
        tifffile.imwrite(path, array, **layout)
        reader = open_source(path).read
        assert len(pickle.dumps(reader)) < 1000
        assert np.array_equal(read_elsewhere(reader, ((3, 55), (40, 90))), array[3:55, 40:90])


def test_threads_can_read_together(path, make_array):
    array = make_array((128, 128))
    tifffile.imwrite(path, array, tile=(16, 16), compression="zlib")
    reader, wrong = open_source(path).read, []

    def read(row):
        if not np.array_equal(reader(((row, row + 20), (0, 128))), array[row : row + 20]):
            wrong.append(row)

    threads = [threading.Thread(target=read, args=(row,)) for row in range(0, 100, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_file_written_anew_is_not_confused_with_the_old_one(path, make_array, check_blocks):
    for seed in (0, 1):
        array = make_array((64, 64 + 16 * seed), seed=seed)
        tifffile.imwrite(path, array, tile=(16, 16), compression="zlib")
        source = open_source(path)
        assert isinstance(source.read, TiffReader)
        check_blocks(source, array, count=3)


def test_the_identity_follows_the_file_and_the_level(pyramid):
    path, _ = pyramid
    first = open_source(path).read.identity()
    assert first == open_source(path).read.identity()
    assert first != open_source(path, name="1").read.identity()
    os.utime(path, ns=(1, 1))
    assert first != open_source(path).read.identity()
