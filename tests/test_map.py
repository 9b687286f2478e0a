"""The one line: what goes in, what comes out."""

import gc
import json
import sqlite3
import weakref
from dataclasses import replace

import dask.array as da
import h5py
import numpy as np
import pytest
import xarray as xr
import zarr
from scipy import ndimage

import barrow
from barrow.errors import BudgetError, InputError

DATA = np.random.default_rng(0).random((6, 40, 50))


def labelled(data=DATA):
    return xr.DataArray(
        data,
        dims=("c", "y", "x"),
        coords={
            "c": list("abcdef"),
            "y": np.arange(40) * 0.5,
            "wavelength": ("c", np.arange(6)),
            "stage": 7,
            "depth": (("y", "x"), np.zeros((40, 50))),
        },
        attrs={"unit": "photons"},
        name="image",
    )


def test_every_kind_of_source_gives_the_same_answer(tmp_path):
    np.save(tmp_path / "data.npy", DATA)
    zarr.save_array(str(tmp_path / "data.zarr"), DATA)
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["inner/data"] = DATA
    sources = [
        DATA,
        da.from_array(DATA, chunks=(2, 15, 50)),
        barrow.open(DATA, dims=("c", "y", "x")),
        zarr.open_array(str(tmp_path / "data.zarr")),
        str(tmp_path / "data.zarr"),
        tmp_path / "data.npy",
        barrow.open(tmp_path / "data.h5", name="inner/data"),
    ]
    for source in sources:
        out = barrow.map(np.sqrt, source)
        assert type(out) is np.ndarray
        np.testing.assert_array_equal(out, np.sqrt(DATA))


def test_a_dataarray_gives_a_dataarray_with_all_that_was_kept():
    image = labelled()
    out = barrow.map(lambda x: x * 2, image)
    xr.testing.assert_identical(out, (image * 2).assign_attrs(image.attrs))


def test_coordinates_of_a_dimension_that_went_are_dropped():
    out = barrow.map(lambda x: x.max(axis=0), labelled())
    assert out.dims == ("y", "x")
    assert set(out.coords) == {"y", "stage", "depth"}
    np.testing.assert_array_equal(out.values, DATA.max(axis=0))


def test_a_stored_labelled_result_opens_in_xarray(tmp_path):
    image = labelled()
    out = barrow.map(lambda x: x * 2, image, to=tmp_path / "out.zarr")
    assert isinstance(out, xr.DataArray)
    assert out.chunks is not None
    xr.testing.assert_identical(out.compute(), (image * 2).assign_attrs(image.attrs))
    again = xr.open_zarr(tmp_path / "out.zarr", consolidated=False)["image"]
    xr.testing.assert_identical(again.compute(), (image * 2).assign_attrs(image.attrs))


def test_the_kind_of_a_result_does_not_depend_on_where_the_source_lies(tmp_path):
    image = labelled()
    image.to_dataset().to_zarr(tmp_path / "in.zarr", zarr_format=3)
    for chunks in ({}, None):
        opened = xr.open_zarr(tmp_path / "in.zarr", chunks=chunks)["image"]
        out = barrow.map(np.sqrt, opened)
        xr.testing.assert_equal(out, np.sqrt(image))


def test_several_sources_are_cut_alike():
    mask = np.random.default_rng(1).random((40, 50)) > 0.5
    plan = barrow.plan(lambda x, m: np.where(m, x, 0), DATA, mask)
    assert plan.cuttable == ("dim_0", "dim_1", "dim_2")
    out = barrow.run(plan.with_chunks(dim_0=4, dim_1=7, dim_2=11)).result
    np.testing.assert_array_equal(out, np.where(mask, DATA, 0))


def test_named_sources_may_have_other_orders_of_dimensions():
    image = labelled()
    weights = barrow.open(np.arange(6.0), dims=("c",))
    plan = barrow.plan(lambda x, w: x * w[:, None, None], image, weights)
    out = barrow.run(plan.with_chunks(c=4, y=9)).result
    np.testing.assert_array_equal(out.values, DATA * np.arange(6.0)[:, None, None])


def test_arguments_of_the_function_cannot_clash_with_ours():
    def shift(x, to, name, memory):
        return x + to + name + memory

    out = barrow.map(shift, DATA, kwargs={"to": 1, "name": 2, "memory": 3})
    np.testing.assert_array_equal(out, shift(DATA, 1, 2, 3))


@pytest.mark.parametrize("border", ["reflect", "mirror", "nearest", 0.0])
def test_a_halo_gives_what_the_uncut_filter_gives(border):
    mode = {"mode": border} if border else {"mode": "constant", "cval": border}
    blur = {"sigma": 1.0, "truncate": 3.0, **mode}
    plan = barrow.plan(
        ndimage.gaussian_filter, DATA, kwargs=blur, halo={0: 3, 1: 3, 2: 3}, border=border
    )
    out = barrow.run(plan.with_chunks(dim_0=4, dim_1=7, dim_2=11)).result
    np.testing.assert_array_equal(out, ndimage.gaussian_filter(DATA, **blur))


@pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "wrap"])
def test_without_a_border_the_function_meets_the_edge_itself(mode):
    def smooth(x):
        # A wrapped edge is the one thing that no chunk can know.
        return ndimage.gaussian_filter1d(x, 1.0, axis=1, mode=mode, truncate=3.0)

    whole = (1,) if mode == "wrap" else ()
    plan = barrow.plan(smooth, DATA, halo={} if whole else {1: 3}, border=None, whole=whole)
    out = barrow.run(plan.with_chunks(dim_0=4, **({} if whole else {"dim_1": 5}))).result
    np.testing.assert_array_equal(out, smooth(DATA))


def test_a_halo_may_be_lopsided():
    def previous(x):
        return x[:-1] if len(x) == 1 else np.concatenate([x[:1], x[:-1]])

    data = np.arange(50.0)
    plan = barrow.plan(previous, data, halo={0: (1, 0)}, border="nearest")
    out = barrow.run(plan.with_chunks(dim_0=7)).result
    np.testing.assert_array_equal(out, previous(data))


def test_empty_data_are_handed_to_the_function_as_in_a_plain_call():
    empty = np.zeros((0, 5), "f4")
    assert barrow.map(lambda x: x.astype("i8"), empty).dtype == "i8"
    assert barrow.map(lambda x: x.sum(axis=0), empty).tolist() == [0.0] * 5
    assert barrow.reduce(np.sum, empty) == 0


def test_a_single_value_is_data_too():
    assert barrow.map(np.negative, np.array(3.0)) == -3


def test_nan_and_infinity_come_through():
    data = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0])
    out = barrow.run(barrow.plan(np.positive, data).with_chunks(dim_0=2)).result
    assert out.tobytes() == data.tobytes()


def test_a_reduction_is_the_same_for_any_order_of_the_tasks(local_cluster):
    data = np.random.default_rng(3).random(100_000)
    plan = barrow.plan(np.sum, data, combine=lambda a, b: a + b).with_chunks(dim_0=777)
    totals = {
        barrow.run(replace(plan, engine=engine, threads=2, workers=1)).result
        for engine in ("inline", "threads", "dask")
    }
    assert len(totals) == 1
    assert totals.pop() == pytest.approx(data.sum())


def test_a_pipeline_of_steps_that_can_be_cut_alike_is_fused():
    steps = [
        barrow.Step(lambda x: x + 1, name="add"),
        barrow.Step(lambda x: ndimage.median_filter(x, 3), name="filter", halo={1: 1, 2: 1, 0: 1}),
        barrow.Step(lambda x: x.max(axis=0), name="flatten"),
    ]
    run = barrow.run(steps, DATA)
    assert run.plan.steps == ("add", "filter", "flatten")
    np.testing.assert_array_equal(run.result, ndimage.median_filter(DATA + 1, 3).max(axis=0))


def test_a_pipeline_whose_steps_need_other_cuts_stores_what_lies_between(monkeypatch):
    monkeypatch.setattr("barrow.composing.FUSED_SHARE", 0.0)
    steps = [
        barrow.Step(lambda x: x - x.mean(axis=0), name="centre", whole=("c",)),
        barrow.Step(lambda x: np.sort(x, axis=2), name="sort", whole=("x",)),
        barrow.Step(lambda x: np.cumsum(x, axis=1), name="add up", whole=("y",)),
    ]
    run = barrow.run(steps, labelled())
    plain = np.cumsum(np.sort(DATA - DATA.mean(axis=0), axis=2), axis=1)
    np.testing.assert_array_equal(run.result.values, plain)
    assert run.plan.steps == ("add up",)
    assert run.result.name == "image"


def test_a_pipeline_may_end_in_a_reduction():
    steps = [barrow.Step(lambda x: x + 1), barrow.Step(np.sum, combine=lambda a, b: a + b)]
    assert barrow.run(steps, np.arange(100)).result == 5050


def test_a_result_larger_than_the_memory_allowed_goes_to_disk(own_cache):
    data = np.random.default_rng(0).integers(0, 255, (200, 300, 100), "u1")
    out = barrow.map(lambda x: x.astype("f8"), data, memory="50MB", whole=(2,))
    assert isinstance(out, zarr.Array)
    np.testing.assert_array_equal(out[...], data.astype("f8"))
    folders = list((own_cache / "runs").glob("*lambda*/result.zarr"))
    assert folders
    del out
    gc.collect()
    assert not any(folder.exists() for folder in folders)


def test_memory_too_small_for_any_chunk_is_an_error_with_the_number():
    data = np.zeros((1000, 1000))
    with pytest.raises(BudgetError, match="must be whole"):
        barrow.map(lambda x: np.sort(x.ravel()).reshape(x.shape), data, whole=(0, 1), memory="1MB")


def test_chunks_fit_the_memory_that_is_allowed():
    # How large they are beyond that is decided by time, which no test can know.
    plan = barrow.plan(
        lambda x: np.exp(x) + 1, np.zeros((4000, 1000)), cluster=False, memory="66MB"
    )
    assert plan.n_chunks > 1
    assert plan.peak_bound_bytes <= plan.budget_bytes


def test_the_run_folder_goes_with_the_result_and_never_lies_in_the_working_directory(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run = barrow.run(barrow.plan(np.sqrt, DATA))
    folder = run.folder
    assert json.loads((folder / "metrics.json").read_text())["chunks"] == run.metrics["chunks"]
    assert barrow.Plan.load(folder / "plan.json").chunks == run.plan.chunks
    rows = sqlite3.connect(folder / "record.sqlite").execute("select count(*) from task").fetchone()
    assert rows == (run.plan.n_chunks,)
    view = run.result[1:]
    del run
    gc.collect()
    assert folder.exists()
    del view
    gc.collect()
    assert not folder.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def no_collector():
    """Nobody looks for rings of objects that hold each other."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("engine", ["inline", "threads", "dask"])
def test_a_result_goes_with_the_last_who_holds_it(engine, local_cluster, no_collector):
    plan = barrow.plan(lambda x: x + 1, DATA, cluster=local_cluster if engine == "dask" else None)
    result = barrow.run(replace(plan, engine=engine)).result
    is_there = weakref.ref(result)
    del result
    assert is_there() is None


def test_arrays_that_were_given_are_not_kept(no_collector):
    given = DATA.copy()
    is_there = weakref.ref(given)
    barrow.map(np.sqrt, given)
    barrow.reduce(np.sum, given)
    barrow.run(
        [barrow.Step(np.sqrt), barrow.Step(np.cumsum, kwargs={"axis": 0}, whole=(0,))], given
    )
    del given
    assert is_there() is None


def test_a_folder_that_was_asked_for_stays(tmp_path):
    run = barrow.run(barrow.Step(np.sqrt), DATA, folder=tmp_path / "mine")
    del run
    gc.collect()
    names = {path.name for path in (tmp_path / "mine").iterdir()}
    assert names >= {"plan.json", "record.sqlite", "metrics.json"}


def test_a_plan_is_the_same_each_time_for_the_same_numbers():
    # The memory that is free changes from moment to moment, and with it the plan.
    first, second = (barrow.plan(np.sqrt, np.zeros((10, 10)), memory="1GB") for _ in range(2))
    assert first == second


def test_a_plan_can_be_saved_read_and_printed(tmp_path):
    plan = barrow.plan(np.sqrt, DATA, name="root <b>")
    plan.save(tmp_path / "plan.json")
    loaded = barrow.Plan.load(tmp_path / "plan.json")
    assert loaded == plan
    assert "root <b>" in str(plan)
    assert "<b>" not in plan._repr_html_()
    with pytest.raises(InputError, match="make it again"):
        barrow.run(loaded)


def test_what_is_not_a_plan_cannot_be_loaded(tmp_path):
    (tmp_path / "plan.json").write_text('{"chunks": 3}')
    with pytest.raises(InputError, match="not a plan"):
        barrow.Plan.load(tmp_path / "plan.json")


def test_a_dimension_that_must_be_whole_cannot_be_cut_by_hand():
    plan = barrow.plan(lambda x: x.max(axis=0), DATA)
    with pytest.raises(InputError, match="cannot be cut"):
        barrow.plan(lambda x: x, DATA, whole=(1,)).with_chunks(dim_1=5)
    assert plan.cuttable == ("dim_1", "dim_2")


@pytest.mark.parametrize(
    "dtype",
    ["?", "i1", "u2", ">i4", "f2", "f4", "c8", "c16", "M8[ns]", "m8[s]", "S4", "U3", "i4,f8"],
)
@pytest.mark.parametrize("engine", ["inline", "threads", "dask"])
def test_every_dtype_comes_through(dtype, engine, local_cluster):
    data = np.arange(60).reshape(6, 10).astype("u1").astype(dtype)
    plan = barrow.plan(lambda x: x[...], data).with_chunks(dim_0=4, dim_1=3)
    out = barrow.run(replace(plan, engine=engine, threads=2)).result
    assert out.dtype == data.dtype
    assert out.tobytes() == data.tobytes()


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", ">i4", "f2", "f4", "c16", "M8[ns]", "S4", "U3"])
def test_every_dtype_can_be_stored(dtype, tmp_path):
    data = np.arange(60).reshape(6, 10).astype("u1").astype(dtype)
    out = barrow.map(lambda x: x[...], data, to=tmp_path / "out.zarr")
    np.testing.assert_array_equal(out[...], data)


def test_coordinates_from_an_old_zarr_store_can_be_stored_again(tmp_path):
    labelled().to_dataset().to_zarr(tmp_path / "in.zarr", zarr_format=2)
    image = xr.open_zarr(tmp_path / "in.zarr")["image"]
    out = barrow.map(np.sqrt, image, to=tmp_path / "out.zarr")
    np.testing.assert_array_equal(out.values, np.sqrt(DATA))
    assert out.coords["c"].values.tolist() == list("abcdef")


def test_little_memory_and_a_function_that_holds_the_lock():
    def slow(x):
        return np.array([float(v) ** 0.5 for v in x.ravel()]).reshape(x.shape)

    data = np.random.default_rng(0).random((64, 64, 128))
    np.testing.assert_array_equal(barrow.map(slow, data, memory="150MB"), slow(data))
