"""Objects found in tiles are those of the whole image, whatever the cut."""

import numpy as np
import pytest
import xarray
from scipy import ndimage

from barrow.errors import InputError, StepError
from barrow.fields.spatial import Watershed, map_raster, pyramid, regionprops, segment
from barrow.fields.spatial.joining import match
from barrow.fields.spatial.tissue import Tissue

TISSUE = Tissue(400, 520, density=0.5, seed=5)


@pytest.fixture(scope="module")
def slide():
    source = TISSUE.image()
    return source.read(source.everything)


@pytest.fixture(scope="module")
def truth():
    source = TISSUE.truth()
    return source.read(source.everything)


@pytest.fixture(scope="module")
def whole(slide):
    """The model on the whole image in one call, numbered by first pixels."""
    return number(Watershed(threshold=400)(slide[0]))


def number(labels):
    names, first = np.unique(labels, return_index=True)
    names, first = names[names != 0], first[names != 0]
    numbers = np.zeros(int(labels.max()) + 1, "u4")
    numbers[names[np.argsort(first)]] = np.arange(1, len(names) + 1)
    return numbers[labels]


def score(found, truth):
    """Return F1 of objects that share half of what they cover together."""
    both = (found > 0) & (truth > 0)
    pairs, shared = np.unique(np.stack([found[both], truth[both]]), axis=1, return_counts=True)
    sizes = [
        dict(zip(*np.unique(side, return_counts=True), strict=True)) for side in (found, truth)
    ]
    good = sum(
        n / (sizes[0][a] + sizes[1][b] - n) >= 0.5
        for (a, b), n in zip(pairs.T.tolist(), shared.tolist(), strict=True)
    )
    return 2 * good / (len(sizes[0]) + len(sizes[1]) - 2)


@pytest.mark.parametrize("chunks", [None, 90, 140, (400, 75), {"y": 121, "x": 203}])
def test_labels_are_those_of_the_whole_image_for_any_cut(slide, whole, chunks):
    found = segment(slide, threshold=400, chunks=chunks, quiet=True)
    np.testing.assert_array_equal(found.labels, whole)


def test_what_is_found_is_what_was_drawn(slide, truth):
    found = segment(slide, chunks=180, quiet=True)
    assert score(found.labels, truth) > 0.95


def test_labels_have_no_gaps_and_a_row_each(slide, whole):
    found = segment(slide, threshold=400, chunks=200, quiet=True)
    assert np.unique(found.labels).tolist() == list(range(len(found.table) + 1))
    assert found.table["label"].tolist() == list(range(1, len(found.table) + 1))
    measure = pytest.importorskip("skimage.measure")
    wanted = ("label", "area", "centroid", "bbox", "intensity_mean")
    image = np.moveaxis(slide, 0, -1)
    peer = measure.regionprops_table(whole, image, properties=wanted)
    for name, column in peer.items():
        np.testing.assert_allclose(found.table[name], column, err_msg=name)


def test_objects_larger_than_the_overlap_are_joined():
    image = np.zeros((300, 400), "u1")
    image[20:280, 40:60] = image[100:120, 40:380] = image[200:220, 150:390] = 200

    def components(tile):
        return ndimage.label(tile > 100)[0]

    found = segment(image, components, overlap=8, chunks=64, quiet=True)
    np.testing.assert_array_equal(found.labels, number(components(image)))
    assert found.table["area"].sum() == (image > 100).sum()


@pytest.mark.parametrize("depth", [None, 4])
def test_labels_that_a_function_makes_of_blocks_are_joined_too(slide, depth):
    def components(block):
        return ndimage.label(block[0] > 500)[0].astype("i4")

    image = slide[:, :300, :300]
    found = map_raster(image, components, depth=depth, chunks=64, dims=("y", "x"), quiet=True)
    np.testing.assert_array_equal(found, number(components(image)))
    apart = map_raster(
        image, components, depth=depth, chunks=64, dims=("y", "x"), relabel=False, quiet=True
    )
    assert apart.max() < found.max()


def test_labels_of_an_image_of_several_scales_have_them_too(slide, tmp_path):
    def bright(block):
        return ndimage.label(block[0] > 500)[0].astype("i4")

    tree = pyramid(slide[:, :200, :200], tmp_path / "slide.zarr", levels=2, quiet=True)
    found = map_raster(tree, bright, depth=4, chunks=64, dims=("y", "x"), quiet=True)
    fine, coarse = (found[scale]["image"].values for scale in ("scale0", "scale1"))
    np.testing.assert_array_equal(fine, number(bright(slide[:, :200, :200])))
    np.testing.assert_array_equal(coarse, fine[1::2, 1::2])


def test_views_that_differ_by_some_pixels_are_one_object():
    before, behind = np.zeros((20, 20), int), np.zeros((20, 20), int)
    before[5:15, 4:14], behind[6:16, 5:15] = 3, 8
    before[0:3, 12:20], behind[17:20, 12:20] = 4, 9
    assert match(before, behind, axis=1, line=10) == [(3, 8)]


def test_neighbours_that_only_touch_stay_two_objects():
    before, behind = np.zeros((20, 20), int), np.zeros((20, 20), int)
    before[5:15, :10] = behind[5:15, :10] = 3
    before[5:15, 10:] = behind[5:15, 10:] = 8
    assert match(before, behind, axis=1, line=10) == []


def test_channels_are_chosen_by_name_and_names_are_kept(slide):
    image = xarray.DataArray(slide, dims=("c", "y", "x"), coords={"c": ["dapi", "marker"]})
    found = segment(image, channel="dapi", quiet=True)
    assert found.labels.dims == ("y", "x")
    assert "intensity_mean-marker" in found.table
    with pytest.raises(InputError, match="has \\['dapi', 'marker'\\]"):
        segment(image, channel="gfp")


class Cellpose:
    """As Cellpose's models: not called, but asked."""

    def eval(self, tile, level):
        return ndimage.label(tile > level)[0].astype("u2"), "flows", "styles"


class StarDist:
    """As StarDist's models."""

    def predict_instances(self, tile, level):
        return ndimage.label(tile > level)[0].astype("i4"), {"points": []}


@pytest.mark.parametrize("model", [Cellpose(), StarDist()])
def test_objects_of_cellpose_and_stardist_are_models(model):
    image = np.zeros((80, 90), "u1")
    image[10:30, 10:70] = 200
    found = segment(
        image, model, model_kwargs={"level": 100}, chunks=40, object_size=20,
        resources={"GPU": 1}, quiet=True,
    )  # fmt: skip
    assert found.table["area"].tolist() == [1200.0]


def test_what_is_no_model_is_one_error(slide):
    with pytest.raises(InputError, match="cannot be called"):
        segment(slide, model="cyto3", quiet=True)
    with pytest.raises(StepError, match="whole numbers are labels"):
        segment(slide, np.sqrt, channel=0, quiet=True)


def test_tiles_smaller_than_their_overlap_still_work(slide, whole):
    found = segment(slide[:, :200, :200], threshold=400, chunks=30, quiet=True)
    wanted = number(Watershed(threshold=400)(slide[0, :200, :200]))
    np.testing.assert_array_equal(found.labels, wanted)


def test_an_image_without_objects_has_an_empty_table():
    found = segment(np.zeros((50, 60), "u2"), threshold=5, quiet=True)
    assert len(found.table) == 0
    assert not found.labels.any()


def test_volumes_are_segmented():
    volume = np.zeros((12, 90, 100), "u1")
    volume[3:9, 10:30, 10:90] = 200

    def components(tile):
        return ndimage.label(tile > 100)[0]

    import barrow

    source = barrow.open(volume, dims=("z", "y", "x"))
    found = segment(source, components, overlap=6, chunks={"y": 40, "x": 40}, quiet=True)
    np.testing.assert_array_equal(found.labels, (volume > 0).astype("u4"))
    assert found.table["area"].tolist() == [6 * 20 * 80]


def test_a_table_can_be_anndata(slide):
    pytest.importorskip("anndata")
    found = segment(slide[:, :200, :200], quiet=True).to_anndata()
    assert found.shape == (len(found.obs), 2)


def test_labels_of_any_size_are_measured_without_being_held(slide, whole):
    table = regionprops(whole, slide, quiet=True)
    assert len(table) == whole.max()
    assert table["area"].sum() == (whole > 0).sum()


def test_tissue_is_the_same_whichever_part_is_made():
    source = TISSUE.image()
    whole = source.read(source.everything)
    part = source.read(((0, 2), (100, 390), (250, 513)))
    np.testing.assert_array_equal(part, whole[:, 100:390, 250:513])
