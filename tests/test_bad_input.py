"""Bad input gets one clear error before any work starts, and leaves nothing behind."""

import os
import sys
import threading
import types

import numpy as np
import pytest

import barrow
from barrow.errors import BarrowError, InputError, OutputError, StepError, TravelError

DATA = np.random.default_rng(0).random((30, 40))


@pytest.fixture
def place(tmp_path):
    """A folder for results in which nothing is left after a refused call."""
    folder = tmp_path / "results"
    folder.mkdir()
    yield folder
    assert list(folder.iterdir()) == []


class CalledError(Exception):
    """The function was called although the call should have been refused."""


def never(*_):
    raise CalledError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"whole": ("time",)}, "whole= names dimension 'time', but the data have 'dim_0', 'dim_1'"),
        ({"halo": {"z": 3}}, "halo= names dimension 'z'"),
        ({"halo": {0: 31}}, "halo of 31 for 'dim_0' is larger than the data, which have 30"),
        ({"halo": 5}, "does not say which dimensions"),
        ({"border": "round"}, "border='round' is unknown"),
        ({"kwargs": 3}, "kwargs must be a dictionary"),
    ],
)
def test_arguments_that_do_not_fit_the_data(options, message, place):
    with pytest.raises(InputError, match=message):
        barrow.map(never, DATA, to=place / "out.zarr", **options)


def test_sources_that_do_not_fit_each_other(place):
    with pytest.raises(InputError, match="'dim_1' has length 40 in 'array' but 41"):
        barrow.map(never, DATA, np.zeros((30, 41)), to=place / "out.zarr")


def test_nothing_to_read():
    with pytest.raises(InputError, match="at least one source"):
        barrow.map(never)


@pytest.mark.parametrize("memory", ["lots", "-5GB"])
def test_a_memory_that_is_no_size(memory, place):
    with pytest.raises(ValueError, match="is not a size"):
        barrow.map(never, DATA, memory=memory, to=place / "out.zarr")


def test_a_function_that_returns_something_else_on_a_later_chunk_names_the_chunk(place):
    data = np.zeros((30, 40))
    data[29, 39] = 1

    def moody(x):
        return x.astype("f4") if x.max() else x

    plan = barrow.plan(moody, data, to=place / "out.zarr").with_chunks(dim_0=10)
    with pytest.raises(
        StepError, match=r"'moody' returned float32\[10, 40\] .*dim_0 20:30"
    ) as caught:
        barrow.run(plan)
    assert "float64[10, 40] was expected" in str(caught.value)
    # What was finished is kept for another try, but not under the name of a whole result.
    assert [path.name for path in place.iterdir()] == [".out.zarr.partial"]
    barrow.run(barrow.plan(np.sqrt, data, to=place / "out.zarr"))
    (place / "out.zarr").rename(place.parent / "moved.zarr")


def test_a_function_that_returns_something_else_on_the_second_call(place):
    calls = []

    def moody(x):
        calls.append(1)
        return x if len(calls) % 2 else x.tolist() and x[0]

    with pytest.raises(BarrowError, match="cannot be put together"):
        barrow.map(moody, DATA, to=place / "out.zarr")


def test_a_function_that_returns_nothing(place):
    with pytest.raises(StepError, match="'print' returned NoneType"):
        barrow.map(print, np.zeros(()), to=place / "out.zarr")


def test_an_output_path_that_holds_something_else(tmp_path):
    (tmp_path / "notes.zarr").mkdir()
    (tmp_path / "notes.zarr" / "precious.txt").write_text("keep me")
    (tmp_path / "file.zarr").write_text("keep me")
    for name in ("notes.zarr", "file.zarr"):
        with pytest.raises(OutputError, match="was not written by barrow"):
            barrow.map(never, DATA, to=tmp_path / name)
    assert (tmp_path / "notes.zarr" / "precious.txt").read_text() == "keep me"
    assert (tmp_path / "file.zarr").read_text() == "keep me"


def test_an_output_path_that_holds_the_result_of_another_call(tmp_path):
    barrow.map(np.sqrt, DATA, to=tmp_path / "out.zarr")
    with pytest.raises(OutputError, match="made by another function"):
        barrow.map(np.exp, DATA, to=tmp_path / "out.zarr")
    with pytest.raises(OutputError, match="made by another function"):
        barrow.map(np.sqrt, DATA + 1, to=tmp_path / "out.zarr")


def test_an_unwritable_path(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        barrow.map(never, DATA, to=tmp_path / "file" / "out.zarr")
    with pytest.raises(OutputError, match="cannot be written"):
        barrow.map(np.sqrt, DATA, to="/proc/out.zarr")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="cannot be written"):
        barrow.map(np.sqrt, DATA, to=tmp_path / "out.zarr")


def test_an_output_of_another_format(place):
    with pytest.raises(InputError, match=r"out\.zarr"):
        barrow.map(never, DATA, to=place / "out.h5")


def test_a_function_that_cannot_be_sent(local_cluster, place):
    lock = threading.Lock()

    def locked(x):
        with lock:
            return x

    with pytest.raises(TravelError, match="'locked' cannot be sent to the workers"):
        barrow.map(locked, DATA, to=place / "out.zarr")
    np.testing.assert_array_equal(barrow.map(locked, DATA, cluster=False), DATA)


def test_a_function_whose_module_the_workers_do_not_have(local_cluster, place, monkeypatch):
    module = types.ModuleType("only_here")
    exec("def double(x): return x * 2", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    with pytest.raises(TravelError, match="No module named 'only_here'"):
        barrow.map(module.double, DATA, to=place / "out.zarr")
    # The workers are still there.
    np.testing.assert_array_equal(barrow.map(np.sqrt, DATA), np.sqrt(DATA))


def test_an_error_of_the_function_arrives_as_it_was_raised(local_cluster):
    def divide(x):
        return x / (1 // int(x[0, 0] > 2))

    with pytest.raises(ZeroDivisionError) as caught:
        barrow.map(divide, np.full((500, 400), 1.0))
    assert "step 'divide' was called with array[" in "".join(caught.value.__notes__)


def test_steps_that_are_none():
    with pytest.raises(InputError, match="the list is empty"):
        barrow.run([], DATA)
    with pytest.raises(InputError, match="must be the last step"):
        barrow.run([barrow.Step(np.sum, combine=max), barrow.Step(np.sqrt)], DATA)


def test_an_unknown_argument_is_not_swallowed():
    with pytest.raises(TypeError):
        barrow.map(np.sqrt, DATA, n_jobs=4)
    with pytest.raises(TypeError):
        barrow.cluster("local", n_jobs=4)
