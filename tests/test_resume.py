"""What was finished once is not computed again."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import zarr

import barrow
from barrow.errors import OutputError

DATA = np.random.default_rng(0).random((40, 50))


def counting(log, fail_after=None):
    """Return a function that notes each call in a file, and fails after some."""

    def func(x):
        with open(log, "a") as file:
            file.write("x")
        if fail_after is not None and os.path.getsize(log) > fail_after:
            raise OSError("no more")
        return x + 1

    return func


def calls(log):
    return os.path.getsize(log) if os.path.exists(log) else 0


def test_the_same_call_again_returns_the_result_without_work(tmp_path):
    log = tmp_path / "log"
    first = barrow.map(counting(log), DATA, to=tmp_path / "out.zarr")
    spent = calls(log)
    second = barrow.map(counting(log), DATA, to=tmp_path / "out.zarr")
    np.testing.assert_array_equal(first[...], DATA + 1)
    np.testing.assert_array_equal(second[...], DATA + 1)
    assert calls(log) - spent <= 4  # the probe looks again, the run does not


def test_resume_can_be_refused(tmp_path):
    barrow.map(np.sqrt, DATA, to=tmp_path / "out.zarr")
    with pytest.raises(OutputError, match="holds another result"):
        barrow.map(np.sqrt, DATA, to=tmp_path / "out.zarr", resume=False)


SCRIPT = """
import sys, time, numpy as np, barrow

def slow(x):
    if len(x) == 1:
        print("chunk", flush=True)
        time.sleep(0.05)
    return x + 1

data = np.load(sys.argv[1])
plan = barrow.plan(slow, data, to=sys.argv[2], cluster=False).with_chunks(dim_0=1)
run = barrow.run(plan)
print("done", run.metrics["chunks_found"], flush=True)
"""


def test_a_run_that_was_killed_is_taken_up_where_it_was(tmp_path):
    np.save(tmp_path / "in.npy", DATA)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "script.py", tmp_path / "in.npy", tmp_path / "out.zarr"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        began = time.monotonic()
        seen = 0
        for line in process.stdout:
            seen += line == "chunk\n"
            # The record is written twice a second.
            if seen >= 15 and time.monotonic() - began > 0.1:
                process.send_signal(signal.SIGKILL)
                break
    assert not (tmp_path / "out.zarr").exists()
    output = subprocess.check_output(command, text=True).splitlines()
    found = int(output[-1].split()[1])
    assert found > 0
    assert output.count("chunk") == 40 - found
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr")[...], DATA + 1)


def test_a_changed_function_does_not_take_up_the_work_of_another(tmp_path):
    log = tmp_path / "log"
    plan = barrow.plan(counting(log, fail_after=10), DATA, to=tmp_path / "out.zarr", cluster=False)
    with pytest.raises(OSError, match="no more"):
        barrow.run(plan.with_chunks(dim_0=2))
    out = barrow.map(lambda x: x - 1, DATA, to=tmp_path / "out.zarr")
    np.testing.assert_array_equal(out[...], DATA - 1)


def test_two_processes_cannot_write_the_same_result(tmp_path):
    from barrow.running.folders import open_result_folder

    folder = open_result_folder(tmp_path / "out.zarr")
    code = "import sys, numpy, barrow; barrow.map(numpy.sqrt, numpy.ones(5), to=sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "out.zarr"], capture_output=True, text=True
    )
    assert "Another process is writing" in done.stderr
    folder.remove()


def test_a_file_that_changed_behind_a_dask_array_is_noticed(tmp_path):
    import xarray as xr

    image = xr.DataArray(DATA, dims=("y", "x"), name="image")
    image.to_dataset().chunk(y=10).to_zarr(tmp_path / "in.zarr", zarr_format=3)

    def call():
        opened = xr.open_zarr(tmp_path / "in.zarr")["image"]
        return barrow.map(np.negative, opened, to=tmp_path / "out.zarr").values

    np.testing.assert_array_equal(call(), -DATA)
    np.testing.assert_array_equal(call(), -DATA)
    zarr.open_array(tmp_path / "in.zarr" / "image")[...] = 1.0
    with pytest.raises(OutputError, match="from other data"):
        call()


def interrupted(tmp_path):
    """Return a plan of which half is done, and the folder in which it waits."""
    stop = tmp_path / "stop"
    stop.touch()

    def half(x, stop=str(stop)):
        if x[0, 0] == DATA[20, 0] and os.path.exists(stop):
            raise OSError("no more")
        return x + 1

    to = tmp_path / "out.zarr"
    plan = barrow.plan(half, DATA, to=to, cluster=False, quiet=True).with_chunks(dim_0=1)
    with pytest.raises(OSError, match="no more"):
        barrow.run(plan)
    stop.unlink()
    (partial,) = tmp_path.glob(".out.zarr.partial")
    return plan, partial


def test_stored_chunks_that_were_torn_or_altered_are_done_again(tmp_path):
    plan, partial = interrupted(tmp_path)
    torn = partial / "c" / "3" / "0"
    torn.write_bytes(torn.read_bytes()[:-7])
    zarr.open_array(partial)[8] = 0
    (partial / "c" / "11" / "0").unlink()
    run = barrow.run(plan)
    np.testing.assert_array_equal(run.result[...], DATA + 1)
    assert run.metrics["chunks_found"] == 20 - 3


def test_a_whole_first_half_is_believed(tmp_path):
    plan, _ = interrupted(tmp_path)
    assert barrow.run(plan).metrics["chunks_found"] == 20


def test_stored_chunks_that_two_tasks_would_write_are_chosen_again(tmp_path):
    plan = barrow.plan(np.negative, DATA, to=tmp_path / "out.zarr", quiet=True)
    wrong = replace(plan, chunks={**plan.chunks, "dim_0": 7}, stored_chunks={"dim_0": 10})
    run = barrow.run(wrong)
    np.testing.assert_array_equal(run.result[...], -DATA)
    assert 7 % run.plan.stored_chunks["dim_0"] == 0


def test_a_run_that_failed_on_its_first_chunk_is_taken_up_again(tmp_path):
    is_mended = tmp_path / "mended"

    def fails(x):
        if len(x) == 7 and not is_mended.exists():
            raise OSError("not yet")
        return -x

    plan = barrow.plan(fails, DATA, to=tmp_path / "out.zarr", quiet=True).with_chunks(dim_0=7)
    with pytest.raises(OSError, match="not yet"):
        barrow.run(plan)
    is_mended.touch()
    np.testing.assert_array_equal(barrow.run(plan).result[...], -DATA)
