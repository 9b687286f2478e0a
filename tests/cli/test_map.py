"""``barrow map``: the same answer as the function itself, from a shell."""

import signal

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import barrow
from barrow.cli.main import main


@pytest.fixture
def call(folder):
    """Run a command in this process, which is quicker."""

    def run(*arguments, status=0):
        done = CliRunner().invoke(main, list(map(str, arguments)))
        assert done.exit_code == status, done.output
        return done

    return run


def image():
    return np.load("image.npy")


def test_a_function_of_a_file_and_of_a_module(run_barrow):
    for number, function in enumerate(("mine.py:scale", "mine:scale")):
        done = run_barrow("map", function, "image.npy", "--to", f"{number}.zarr")
        assert "Plan for 'scale'" in done.stderr
        assert f"Result in {number}.zarr" in done.stdout
        stored = zarr.open_array(f"{number}.zarr")
        np.testing.assert_array_equal(stored[...], image() * 2 + 1)


def test_a_function_of_a_file_runs_on_workers(run_barrow):
    run_barrow("map", "mine.py:scale", "image.zarr", "--to", "out.zarr", "--workers", 1)
    np.testing.assert_array_equal(zarr.open_array("out.zarr")[...], image() * 2 + 1)


def test_the_names_of_dimensions_are_kept(call):
    call("map", "numpy:negative", "image.zarr", "--to", "out.zarr", "--quiet")
    assert zarr.open_array("out.zarr").metadata.dimension_names == ("c", "y", "x")


def test_arguments_reach_the_function(call):
    call("map", "mine.py:scale", "image.npy", "--to", "o.zarr", "--kwargs", '{"factor": 5}')
    np.testing.assert_array_equal(zarr.open_array("o.zarr")[...], image() * 5 + 1)


def test_chunks_that_fail_can_be_left_out(call):
    plan = barrow.plan(np.negative, "image.npy", name="refuse_first")
    plan.with_chunks(dim_0=1).save("plan.json")
    options = ["--to", "o.zarr", "--on-error", "skip", "--like", "plan.json"]
    done = call("map", "mine.py:refuse_first", "image.npy", *options)
    assert "Skipped: chunk 0 ([0:1, 0:40, 0:50]) of 'refuse_first'" in done.stderr
    assert "ValueError: not this one" in done.stderr
    np.testing.assert_array_equal(zarr.open_array("o.zarr")[1:], image()[1:])


def test_halo_whole_border_and_memory_are_understood(call):
    options = ["--halo", "y=1", "--whole", "-1", "--border", "none", "--memory", "50MB"]
    call("map", "mine.py:smooth", "image.zarr", "--to", "o.zarr", *options)
    padded = np.pad(image(), ((0, 0), (1, 1), (0, 0)), mode="symmetric")
    expected = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    np.testing.assert_array_equal(zarr.open_array("o.zarr")[...], expected)


def test_several_sources_and_a_named_array_of_a_file(call):
    import h5py

    with h5py.File("many.h5", "w") as file:
        file["raw/image"], file["mask"] = image(), image()[0]
    call("map", "mine.py:add", "many.h5::raw/image", "many.h5::mask", "--to", "o.zarr")
    np.testing.assert_array_equal(zarr.open_array("o.zarr")[...], image() + image()[0])


def test_quiet_prints_nothing(run_barrow):
    done = run_barrow("map", "numpy:sqrt", "image.npy", "--to", "o.zarr", "--quiet")
    assert (done.stdout, done.stderr) == ("", "")


def test_the_same_command_again_says_that_the_result_is_there(call):
    command = ["map", "numpy:sqrt", "image.npy", "--to", "o.zarr"]
    call(*command)
    assert "holds this result already" in call(*command).output


def test_what_barrow_refuses_is_told_without_a_traceback(run_barrow):
    done = run_barrow("map", "numpy:sqrt", "imag.npy", "--to", "o.zarr", status=1)
    assert done.stderr.startswith("Error: ")
    assert "does not exist" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_of_the_function_keeps_its_traceback(run_barrow):
    done = run_barrow("map", "mine.py:broken", "image.npy", "--to", "o.zarr", status=1)
    assert "Traceback" in done.stderr
    assert "RuntimeError: no such cell" in done.stderr
    assert "barrow: step 'broken' was called with" in done.stderr


def test_an_interrupted_run_says_how_to_go_on(start_barrow, folder):
    with start_barrow("map", "mine.py:endless", "image.npy", "--to", "o.zarr") as process:
        assert process.stdout.readline() == "began\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    hint = "The same call again goes on where this one stopped; or: barrow resume o.zarr\n"
    assert errors.endswith(hint)
    assert "Traceback" not in errors
    assert not (folder / "o.zarr").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sqrt", "image.npy", "--to", "o"], "names no function"),
        (["nowhere:f", "image.npy", "--to", "o"], "no module 'nowhere'"),
        (["no.py:f", "image.npy", "--to", "o"], "no file 'no.py'"),
        (["mine.py:f", "image.npy", "--to", "o"], "has no function 'f'"),
        (["numpy:pi", "image.npy", "--to", "o"], "is not a function"),
        (["numpy:sqrt", "--to", "o"], "Missing argument"),
        (["numpy:sqrt", "image.npy"], "Missing option '--to'"),
        (["numpy:sqrt", "image.npy", "--to", "o", "--memory", "lots"], "is not a size"),
        (["numpy:sqrt", "image.npy", "--to", "o", "--halo", "y"], "is not a halo"),
        (["numpy:sqrt", "image.npy", "--to", "o", "--border", "x"], "not a number"),
        (["numpy:sqrt", "image.npy", "--to", "o", "--kwargs", "[1]"], "names no arguments"),
        (["numpy:sqrt", "image.npy", "--to", "o", "--kwargs", "{"], "is not JSON"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_a_usage_error(arguments, message, call, folder):
    assert message in call("map", *arguments, status=2).output
    assert not (folder / "o").exists()
