"""What was finished once is not computed again."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import zarr

import barrow
from barrow.errors import InputError, OutputError, TravelError

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
        seen = 0
        for line in process.stdout:
            seen += line == "chunk\n"
            if seen == 15:
                process.send_signal(signal.SIGKILL)
                break
    assert not (tmp_path / "out.zarr").exists()
    output = subprocess.check_output(command, text=True).splitlines()
    found = int(output[-1].split()[1])
    assert found >= 14  # all that had ended
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


def failing(tmp_path):
    """Return a function that fails in the middle of the data until a file is removed."""
    stop = tmp_path / "stop"
    stop.touch()
    last = DATA[20, 0]

    def half(x, stop=str(stop)):
        if len(x) == 1 and x[0, 0] == last and os.path.exists(stop):
            raise OSError("no more")
        return x + 1

    return half


def fail(tmp_path, plan):
    """Run a plan until it fails, then remove what makes it fail; return where its files are."""
    with pytest.raises(OSError, match="no more"):
        barrow.run(plan)
    (tmp_path / "stop").unlink()
    return tmp_path / ".out.zarr.partial"


def interrupted(tmp_path, data=DATA, dim="dim_0"):
    """Return a plan of which half is done, and the folder in which it waits."""
    to = tmp_path / "out.zarr"
    plan = barrow.plan(failing(tmp_path), data, to=to, cluster=False, quiet=True)
    plan = plan.with_chunks(**{dim: 1})
    return plan, fail(tmp_path, plan)


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


# Without the script


def test_a_run_is_finished_from_what_lies_in_its_folder(tmp_path):
    np.save(tmp_path / "in.npy", DATA)
    plan, partial = interrupted(tmp_path, tmp_path / "in.npy")
    call = partial / ".barrow" / "call"
    assert call.stat().st_mode & 0o777 == 0o600
    run = barrow.resume(tmp_path / "out.zarr", quiet=True)
    np.testing.assert_array_equal(run.result[...], DATA + 1)
    assert (run.metrics["chunks_found"], run.plan.chunks) == (20, plan.chunks)
    # It is the same result for the script, and holds no code any more.
    assert barrow.run(plan).metrics == run.metrics
    assert not list((tmp_path / "out.zarr").rglob("call"))


@pytest.mark.parametrize("name", [".out.zarr.partial", ".out.zarr.partial/.barrow", "out.zarr/"])
def test_a_run_is_found_by_any_of_its_folders(name, tmp_path):
    interrupted(tmp_path)
    run = barrow.resume(f"{tmp_path}/{name}", quiet=True)
    assert run.folder == tmp_path / "out.zarr" / ".barrow"
    # And now that it is finished, by the same name.
    assert barrow.resume(f"{tmp_path}/{name}").metrics == run.metrics


def test_a_finished_labelled_result_comes_back_with_its_labels(tmp_path):
    import xarray as xr

    coords = {"y": np.arange(40) * 2.0, "row": ("y", np.arange(40))}
    image = xr.DataArray(DATA, dims=("y", "x"), name="image", coords=coords, attrs={"unit": "mm"})
    barrow.map(np.negative, image, to=tmp_path / "out.zarr")
    xr.testing.assert_identical(barrow.resume(tmp_path / "out.zarr").result.compute(), -image)


def test_an_interrupted_labelled_run_goes_on(tmp_path):
    import xarray as xr

    image = xr.DataArray(DATA, dims=("y", "x"), name="image", attrs={"unit": "mm"})
    image.to_dataset().to_zarr(tmp_path / "in.zarr", zarr_format=2)
    interrupted(tmp_path, xr.open_zarr(tmp_path / "in.zarr")["image"], dim="y")
    run = barrow.resume(tmp_path / "out.zarr", quiet=True)
    assert run.metrics["chunks_found"] == 20
    xr.testing.assert_identical(run.result.compute(), (image + 1).assign_attrs(unit="mm"))


def test_the_last_stage_of_a_pipeline_goes_on_and_the_others_are_done_again(tmp_path, monkeypatch):
    monkeypatch.setattr("barrow.composing.FUSED_BYTES", 1)

    def level(x):
        return x - x.mean(1, keepdims=True)

    last = level(DATA)[:, 20]

    def order(x, stop=str(tmp_path / "stop")):
        if x.shape[1] == 1 and (x[:, 0] == last).all() and os.path.exists(stop):
            raise OSError("no more")
        return np.sort(x, 0)

    (tmp_path / "stop").touch()
    steps = [barrow.Step(level, whole=(1,)), barrow.Step(order, whole=(0,))]
    plan = barrow.plan(steps, DATA, to=tmp_path / "out.zarr", cluster=False, quiet=True)
    assert len(plan.stages) == 2
    fail(tmp_path, plan.with_chunks(dim_1=1))
    run = barrow.resume(tmp_path / "out.zarr", quiet=True)
    assert (run.metrics["chunks_found"], len(run.plan.before)) == (20, 1)
    np.testing.assert_array_equal(run.result[...], np.sort(level(DATA), 0))


def test_a_pipeline_that_was_interrupted_in_its_first_stage_goes_on_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr("barrow.composing.FUSED_BYTES", 1)
    half = failing(tmp_path)
    steps = [barrow.Step(half, whole=(1,)), barrow.Step(lambda x: np.sort(x, 0), whole=(0,))]
    plan = barrow.plan(steps, DATA, to=tmp_path / "out.zarr", cluster=False, quiet=True)
    (first,) = plan.before
    first = replace(first.with_chunks(dim_0=1), result="store")
    fail(tmp_path, replace(plan, before=(first,)))
    assert not (tmp_path / ".out.zarr.partial").exists()
    run = barrow.resume(tmp_path / ".out.zarr.stages", quiet=True)
    np.testing.assert_array_equal(run.result[...], np.sort(DATA + 1, 0))
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]


def test_changed_data_are_an_error_and_what_was_done_stays(tmp_path):
    np.save(tmp_path / "in.npy", DATA)
    _, partial = interrupted(tmp_path, tmp_path / "in.npy")
    np.save(tmp_path / "in.npy", DATA + 1)
    with pytest.raises(InputError, match=r"The data have changed or are gone .*: 'in'"):
        barrow.resume(tmp_path / "out.zarr")
    (tmp_path / "in.npy").unlink()
    with pytest.raises(InputError, match=r"The data have changed or are gone .*: 'in'"):
        barrow.resume(tmp_path / "out.zarr")
    assert (partial / "c" / "0" / "0").exists()


def test_data_in_memory_are_not_kept_but_the_same_call_goes_on(tmp_path):
    data = np.tile(DATA, (1, 1100))
    plan, partial = interrupted(tmp_path, data)
    assert (partial / ".barrow" / "call").stat().st_size < 10_000
    with pytest.raises(TravelError, match=r"data lie in memory.* Make the same call again"):
        barrow.resume(tmp_path / "out.zarr")
    assert barrow.run(plan).metrics["chunks_found"] == 20


def test_a_function_that_cannot_be_kept_is_no_trouble_until_it_is_needed(tmp_path):
    import threading

    lock, half = threading.Lock(), failing(tmp_path)

    def locked(x):
        with lock:
            return half(x)

    plan = barrow.plan(locked, DATA, to=tmp_path / "out.zarr", cluster=False, quiet=True)
    fail(tmp_path, plan.with_chunks(dim_0=1))
    with pytest.raises(OutputError, match="Make its call again"):
        barrow.resume(tmp_path / "out.zarr")


@pytest.mark.parametrize("name", ["call", "."])
def test_code_that_others_may_have_written_is_not_run(name, tmp_path):
    _, partial = interrupted(tmp_path)
    (partial / ".barrow" / name).chmod(0o777)
    with pytest.raises(OutputError, match="others may write there"):
        barrow.resume(tmp_path / "out.zarr")


def test_a_call_of_another_python_is_not_opened(tmp_path):
    _, partial = interrupted(tmp_path)
    path = partial / ".barrow" / "call"
    header, _, content = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(header), "python": "3.2"}).encode() + b"\n" + content)
    with pytest.raises(TravelError, match=r"begun with Python 3\.2"):
        barrow.resume(tmp_path / "out.zarr")
    path.write_bytes(b"else\n" + content)
    with pytest.raises(OutputError, match="another version of barrow"):
        barrow.resume(tmp_path / "out.zarr")
    path.unlink()
    with pytest.raises(OutputError, match="no call that could be made again"):
        barrow.resume(tmp_path / "out.zarr")


def test_a_run_that_another_process_works_on_is_left_to_it(tmp_path):
    from barrow.running.folders import open_result_folder

    interrupted(tmp_path)
    folder = open_result_folder(tmp_path / "out.zarr")
    with pytest.raises(OutputError, match="Another process is writing"):
        barrow.resume(tmp_path / "out.zarr")
    folder.release()


def test_what_is_no_run_is_said_to_be_none(tmp_path):
    for name in ("nowhere", "."):
        with pytest.raises(InputError, match="is no run of barrow"):
            barrow.resume(tmp_path / name)


def test_a_run_without_a_place_for_its_result(tmp_path):
    plan = barrow.plan(failing(tmp_path), DATA, cluster=False, quiet=True).with_chunks(dim_0=1)
    fail(tmp_path, replace(plan, options={**plan.options, "folder": tmp_path / "half"}))
    with pytest.raises(OutputError, match="had no place of its own"):
        barrow.resume(tmp_path / "half")
    barrow.run(plan, folder=tmp_path / "whole")
    assert barrow.resume(tmp_path / "whole").metrics["chunks"] == 40
