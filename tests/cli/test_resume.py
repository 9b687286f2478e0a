"""``barrow resume``: a run is finished from a shell, without its script."""

import re
import signal

import numpy as np
import pytest
import zarr

SCRIPT = """
import sys, barrow, slowly
plan = barrow.plan(slowly.scale, "image.npy", to="out.zarr", cluster=False)
barrow.run(plan.with_chunks(dim_1=1))
"""
MODULE = """
import os, time, beside
def scale(x):
    if x.shape[1] == 1:
        print("chunk", flush=True)
        while os.path.exists("slow") and x[0, 0, 0] == LAST:
            time.sleep(0.01)
    return x * 2 + beside.OFFSET
"""


@pytest.fixture
def killed(folder, start_python):
    """A run whose process was killed at the eleventh of its forty chunks."""
    image = np.load("image.npy")
    (folder / "slow").touch()
    (folder / "slowly.py").write_text(f"LAST = {float(image[0, 10, 0])!r}\n{MODULE}")
    (folder / "script.py").write_text(SCRIPT)
    with start_python("script.py") as process:
        for _ in range(11):
            assert process.stdout.readline() == "chunk\n"
        process.send_signal(signal.SIGKILL)
    (folder / "slow").unlink()
    return folder


def test_a_killed_run_is_finished_from_any_folder(killed, run_barrow, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = run_barrow("resume", killed / "out.zarr", cwd=elsewhere)
    *chunks, summary, place = done.stdout.splitlines()
    # The last few of the ten may have been on their way together with the eleventh.
    before = int(re.fullmatch(r"'scale': 40 chunks .*; (\d+) of them were done before", summary)[1])
    assert 0 < before <= 10
    assert chunks == ["chunk"] * (40 - before)
    assert place == f"Result in {killed}/out.zarr"
    stored = zarr.open_array(killed / "out.zarr")[...]
    np.testing.assert_array_equal(stored, np.load("image.npy") * 2 + 1)
    again = run_barrow("resume", "out.zarr")
    assert again.stdout.startswith("out.zarr is finished.\n'scale': 40 chunks in ")


def test_workers_can_be_asked_for_and_silence_too(killed, run_barrow):
    done = run_barrow("resume", ".out.zarr.partial", "--workers", 1, "--quiet")
    assert set(done.stdout.splitlines()) == {"chunk"}  # the function's own
    assert done.stderr == ""
    np.testing.assert_array_equal(zarr.open_array("out.zarr")[...], np.load("image.npy") * 2 + 1)


def test_changed_code_is_told_without_a_traceback(killed, run_barrow):
    (killed / "beside.py").write_text("OFFSET = 2.0\n")
    done = run_barrow("resume", "out.zarr", status=1)
    assert done.stderr.startswith("Error: 'scale' has changed since the run in ")
    assert (killed / ".out.zarr.partial" / "c").exists()
    (killed / "beside.py").unlink()
    done = run_barrow("resume", "out.zarr", status=1)
    assert "cannot be imported here: No module named 'beside'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_is_no_run_is_an_error(run_barrow):
    done = run_barrow("resume", "image.zarr", status=1)
    assert done.stderr.startswith("Error: 'image.zarr' is no run of barrow")


def test_an_interrupted_command_is_finished_by_another(start_barrow, run_barrow, folder):
    (folder / "mine.py").write_text(
        "import os, time, beside\n"
        "def wait(x):\n"
        "    if x.shape == (3, 40, 50): print('began', flush=True)\n"
        "    while x.shape == (3, 40, 50) and os.path.exists('slow'): time.sleep(0.01)\n"
        "    return x + beside.OFFSET\n"
    )
    (folder / "slow").touch()
    with start_barrow("map", "mine.py:wait", "image.npy", "--to", "o.zarr", "--quiet") as process:
        assert process.stdout.readline() == "began\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    hint = "The same call again goes on where this one stopped; or: barrow resume o.zarr\n"
    assert (process.returncode, errors) == (130, hint)
    (folder / "slow").unlink()
    (folder / "mine.py").unlink()  # functions of a file are kept as they were
    run_barrow("resume", "o.zarr")
    np.testing.assert_array_equal(zarr.open_array("o.zarr")[...], np.load("image.npy") + 1)


def test_an_interrupt_before_there_is_anything_to_go_on_with_is_one_line(start_barrow, folder):
    (folder / "mine.py").write_text(
        "import time\n"
        "def wait(x):\n"
        "    print('began', flush=True)\n"
        "    while True: time.sleep(0.01)\n"
    )
    with start_barrow("plan", "mine.py:wait", "image.npy") as process:
        assert process.stdout.readline() == "began\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "Interrupted.\n")
