"""Disks fill up, go away and are damaged: what is done is kept, and nothing wrong is believed."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import zarr

import barrow
from barrow.errors import OutputError
from barrow.running.disk import measure_room
from barrow.running.watch import Watch

DATA = np.random.default_rng(0).random((64, 32, 256))  # 64 chunks of 64 KiB
SMALL = DATA[:32, :4, :8].copy()
ENGINES = ["inline", "threads", "dask"]
MIB = 2**20


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here: that needs an administrator")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def planned(func, to, engine="inline", data=DATA):
    plan = barrow.plan(func, data, to=to, memory="1GB", quiet=True, name="f")
    return replace(
        plan,
        engine=engine,
        workers=2 if engine == "dask" else 1,
        threads=2 if engine == "threads" else 1,
    ).with_chunks(dim_0=1)


def add_one(x):
    return x + 1


def fill(disk, left):
    """Fill a disk up to so many bytes and return the file that does it."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(measure_room(disk).free_bytes - left))
    return ballast


def fill_up(disk):
    """Fill a disk to the last byte."""
    with suppress(OSError), open(disk / "ballast", "wb", buffering=0) as file:
        while file.write(bytes(2**16)):
            pass


def events(folder):
    with sqlite3.connect(folder / ".barrow" / "record.sqlite") as db:
        return dict(db.execute("select kind, message from event").fetchall())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_waits_while_the_disk_is_full_and_then_goes_on(
    engine, small_disk, local_cluster, monkeypatch, capfd
):
    ballast = fill(small_disk, 3 * MIB)
    wait = Watch.wait

    def free_and_wait(watch):
        ballast.unlink(missing_ok=True)
        wait(watch)

    monkeypatch.setattr(Watch, "wait", free_and_wait)
    run = barrow.run(planned(add_one, small_disk / "out.zarr", engine))
    np.testing.assert_array_equal(run.result[...], DATA + 1)
    assert run.metrics["paused"] == 1
    assert run.metrics["chunks"] == 64
    noted = events(small_disk / "out.zarr")
    assert "The result needs up to 4.00 MiB more" in noted["space"]
    # Which of the two meets the end of the disk first depends on the sizes of both.
    assert re.match("Waits: the (disk is full|record cannot be written)", noted["paused"])
    assert "Goes on after" in noted["resumed"]
    assert "Traceback" not in capfd.readouterr().err


def test_a_disk_that_takes_no_more_files_is_full_too(small_disk, monkeypatch):
    subprocess.run(["mount", "-o", "remount,nr_inodes=120", small_disk], check=True)
    monkeypatch.setenv("BARROW_DISK_WAIT", "0.1")
    plan = planned(add_one, small_disk / "out.zarr")
    with pytest.raises(OutputError, match="would fit: a quota or the number of files is used up"):
        barrow.run(plan)
    subprocess.run(["mount", "-o", "remount,nr_inodes=0", small_disk], check=True)
    np.testing.assert_array_equal(barrow.run(plan).result[...], DATA + 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_waited_in_vain_is_taken_up_when_there_is_room(
    engine, small_disk, local_cluster, monkeypatch
):
    monkeypatch.setenv("BARROW_DISK_WAIT", "0.1")
    ballast = fill(small_disk, 3 * MIB)
    plan = planned(add_one, small_disk / "out.zarr", engine)
    with pytest.raises(OutputError, match=r"out.zarr is not whole: .*disk is full.* is kept"):
        barrow.run(plan)
    assert not (small_disk / "out.zarr").exists()
    ballast.unlink()
    run = barrow.run(plan)
    np.testing.assert_array_equal(run.result[...], DATA + 1)
    assert 0 < run.metrics["chunks_found"] < 64


def test_a_plain_call_with_worker_processes_says_in_one_error_that_the_disk_is_full(
    small_disk, monkeypatch, capfd
):
    monkeypatch.setenv("BARROW_DISK_WAIT", "0.1")
    fill(small_disk, 3 * MIB)
    plan = replace(planned(add_one, small_disk / "out.zarr"), engine="processes", workers=2)
    with pytest.raises(OutputError, match="the disk is full"):
        barrow.run(plan)
    assert "Traceback" not in capfd.readouterr().err


def test_what_clearly_does_not_fit_is_refused_before_anything_is_done(small_disk):
    data = np.random.default_rng(0).random((16, MIB // 2))
    with pytest.raises(OutputError, match=r"up to 64.0 MiB more .* MiB is free at"):
        barrow.run(planned(add_one, small_disk / "out.zarr", data=data))
    assert not list(small_disk.iterdir())


def test_what_may_fit_is_tried(small_disk):
    zeros = np.zeros((40, MIB), "u1")
    run = barrow.run(planned(np.negative, small_disk / "out.zarr", data=zeros))
    assert run.metrics["paused"] == 0
    assert not run.result[...].any()


def test_a_disk_without_any_room_is_refused(small_disk):
    fill_up(small_disk)
    with pytest.raises(OutputError, match=r"is full|cannot be used"):
        barrow.run(planned(add_one, small_disk / "out.zarr"))


def test_a_full_disk_before_a_run_is_taken_up_costs_nothing_that_was_done(small_disk):
    plan, _ = interrupted(small_disk)
    fill_up(small_disk)
    with pytest.raises(OutputError):
        barrow.run(plan)
    (small_disk / "ballast").unlink()
    assert barrow.run(plan).metrics["chunks_found"] == 16


def test_a_result_without_a_place_says_where_it_was_kept(small_disk, monkeypatch):
    monkeypatch.setenv("BARROW_DISK_WAIT", "0.1")
    monkeypatch.setenv("BARROW_CACHE", str(small_disk / "cache"))
    plan = replace(planned(add_one, None), result="store")
    fill(small_disk, 3 * MIB)
    with pytest.raises(OutputError, match="BARROW_CACHE"):
        barrow.run(plan)
    assert not list((small_disk / "cache" / "runs").iterdir())


def test_a_result_in_memory_does_not_depend_on_the_disk_of_its_record(small_disk):
    def filling(x, disk=small_disk):
        if (disk / "run").exists() and not (disk / "ballast").exists():
            fill_up(disk)
        return x + 1

    run = barrow.run(planned(filling, None), folder=small_disk / "run")
    np.testing.assert_array_equal(run.result, DATA + 1)
    assert run.metrics["chunks"] == 64
    assert not measure_room(small_disk).free_bytes


def test_a_result_in_memory_does_not_need_a_record(small_disk):
    fill_up(small_disk)
    run = barrow.run(planned(add_one, None), folder=small_disk / "run")
    np.testing.assert_array_equal(run.result, DATA + 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_folder_that_is_removed_in_the_middle_is_one_error(engine, tmp_path, local_cluster):
    neighbour = tmp_path / "neighbour.zarr"
    barrow.map(np.negative, SMALL, to=neighbour, quiet=True)
    partial, marker = tmp_path / ".out.zarr.partial", tmp_path / "removed"

    def remove(x):
        if len(x) == 1 and x[0, 0, 0] == SMALL[20, 0, 0] and not marker.exists():
            marker.touch()
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(partial, ignore_errors=True)
        return x + 1

    plan = planned(remove, tmp_path / "out.zarr", engine, SMALL)
    with pytest.raises(OutputError, match="was removed or replaced while the run was writing"):
        barrow.run(plan)
    assert not (tmp_path / "out.zarr").exists()
    np.testing.assert_array_equal(zarr.open_array(neighbour)[...], -SMALL)
    np.testing.assert_array_equal(barrow.run(plan).result[...], SMALL + 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_store_that_becomes_read_only_is_one_error(engine, small_disk, local_cluster):
    chunks, marker = small_disk / ".out.zarr.partial" / "c", small_disk / "done"

    def protect(x):
        if len(x) == 1 and x[0, 0, 0] == DATA[40, 0, 0] and not marker.exists():
            marker.touch()
            subprocess.run(["mount", "--bind", chunks, chunks], check=True)
            # It is busy while somebody has a file open there for writing.
            for _ in range(200):
                if not subprocess.run(["mount", "-o", "remount,bind,ro", chunks]).returncode:
                    return x + 1
                time.sleep(0.01)
            raise AssertionError("the folder stayed busy")
        return x + 1

    plan = planned(protect, small_disk / "out.zarr", engine)
    with pytest.raises(OutputError, match=r"cannot be written any more: Read-only.* is kept"):
        barrow.run(plan)
    subprocess.run(["umount", "--lazy", chunks], check=True)
    run = barrow.run(plan)
    np.testing.assert_array_equal(run.result[...], DATA + 1)
    assert run.metrics["chunks_found"] > 20


def interrupted(folder):
    """Return a plan of which half is done, and the folder in which it waits."""
    stop = folder / "stop"
    stop.touch()

    def half(x, stop=str(stop)):
        if x[0, 0, 0] == SMALL[16, 0, 0] and os.path.exists(stop):
            raise OSError("no more")
        return x + 1

    stop.rename(folder / "later")
    plan = planned(half, folder / "out.zarr", data=SMALL)
    (folder / "later").rename(stop)
    with pytest.raises(OSError, match="no more"):
        barrow.run(plan)
    stop.unlink()
    return plan, folder / ".out.zarr.partial"


def overwrite(path):
    path.write_bytes(b"\x00garbage\xff" * 500)


def truncate(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def scribble(path):
    """Spoil the middle of a file; its head still looks right."""
    content = bytearray(path.read_bytes())
    content[4096:12288] = os.urandom(8192)
    path.write_bytes(content)


def drop_table(path):
    with sqlite3.connect(path) as db:
        db.execute("drop table task")


@pytest.mark.parametrize("spoil", [overwrite, truncate, scribble, drop_table])
def test_a_ledger_that_cannot_be_read_is_kept_aside_and_the_chunks_are_done_again(spoil, tmp_path):
    plan, partial = interrupted(tmp_path)
    spoil(partial / ".barrow" / "record.sqlite")
    zarr.open_array(partial)[3] = 0  # nothing that is stored may be believed now
    run = barrow.run(plan)
    np.testing.assert_array_equal(run.result[...], SMALL + 1)
    assert run.metrics["chunks_found"] == 0
    assert (run.folder / "damaged-1.sqlite").exists()
    assert "cannot be read" in events(tmp_path / "out.zarr")["damaged"]


def test_a_ledger_that_is_gone_or_empty_costs_only_time(tmp_path):
    plan, partial = interrupted(tmp_path)
    (partial / ".barrow" / "record.sqlite").write_bytes(b"")
    run = barrow.run(plan)
    np.testing.assert_array_equal(run.result[...], SMALL + 1)
    assert run.metrics["chunks_found"] == 0


def test_a_ledger_that_another_program_holds_is_an_error_and_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("barrow.recording.opening.BUSY_SECONDS", 0.01)
    plan, partial = interrupted(tmp_path)
    other = sqlite3.connect(partial / ".barrow" / "record.sqlite")
    other.execute("pragma locking_mode=exclusive")
    other.execute("begin exclusive")
    with pytest.raises(OutputError, match=r"Another program is using .*record.sqlite"):
        barrow.run(plan)
    other.rollback()
    other.close()
    assert barrow.run(plan).metrics["chunks_found"] == 16


@pytest.mark.parametrize("spoil", [overwrite, truncate, os.unlink])
def test_a_plan_that_cannot_be_read_is_taken_from_the_record(spoil, tmp_path):
    plan, partial = interrupted(tmp_path)
    spoil(partial / ".barrow" / "plan.json")
    run = barrow.run(plan)
    np.testing.assert_array_equal(run.result[...], SMALL + 1)
    assert run.metrics["chunks_found"] == 16


def test_without_any_plan_everything_is_done_again(tmp_path):
    plan, partial = interrupted(tmp_path)
    overwrite(partial / ".barrow" / "plan.json")
    overwrite(partial / ".barrow" / "record.sqlite")
    run = barrow.run(plan)
    np.testing.assert_array_equal(run.result[...], SMALL + 1)
    assert "its plan cannot be read" in events(tmp_path / "out.zarr")["damaged"]


@pytest.mark.parametrize("spoil", [overwrite, truncate, os.unlink])
@pytest.mark.parametrize("name", ["zarr.json", ".barrow/key"])
def test_a_store_that_cannot_be_trusted_is_made_again(name, spoil, tmp_path):
    plan, partial = interrupted(tmp_path)
    spoil(partial / name)
    run = barrow.run(plan)
    np.testing.assert_array_equal(run.result[...], SMALL + 1)
    assert run.metrics["chunks_found"] == 0


def test_a_store_with_other_chunks_than_its_plan_says_is_made_again(tmp_path):
    plan, partial = interrupted(tmp_path)
    metadata = json.loads((partial / "zarr.json").read_text())
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = [2, 4, 8]
    (partial / "zarr.json").write_text(json.dumps(metadata))
    np.testing.assert_array_equal(barrow.run(plan).result[...], SMALL + 1)


def test_a_run_stopped_before_its_first_chunk_can_be_begun_again(tmp_path):
    def stop(x, marker=tmp_path / "go"):
        if len(x) == 1 and not marker.exists():
            raise KeyboardInterrupt
        return x + 1

    plan = planned(stop, tmp_path / "out.zarr", data=SMALL)
    with pytest.raises(KeyboardInterrupt):
        barrow.run(plan)
    (tmp_path / "go").touch()
    np.testing.assert_array_equal(barrow.run(plan).result[...], SMALL + 1)


def test_files_that_a_killed_writer_left_half_written_are_removed(tmp_path):
    plan, partial = interrupted(tmp_path)
    half = partial / "c" / "40" / "0" / f"0.{'0a' * 16}.partial"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half")
    run = barrow.run(plan)
    assert not list((tmp_path / "out.zarr").rglob("*.partial"))
    assert run.metrics["chunks_found"] == 16


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        (".barrow/key", os.unlink, "its folder .barrow is damaged"),
        (".barrow/metrics.json", os.unlink, "its folder .barrow is damaged"),
        (".barrow/metrics.json", overwrite, "its folder .barrow is damaged"),
        (".barrow/key", overwrite, "holds another result"),
        ("zarr.json", overwrite, "cannot be opened any more"),
        (".barrow", shutil.rmtree, "was not written by barrow"),
    ],
)
def test_a_whole_result_that_is_damaged_is_an_error_and_left_alone(name, spoil, message, tmp_path):
    to = tmp_path / "out.zarr"
    barrow.map(np.negative, SMALL, to=to, quiet=True)
    spoil(to / name)
    before = sorted(path.relative_to(to) for path in to.rglob("*"))
    with pytest.raises(OutputError, match=message):
        barrow.map(np.negative, SMALL, to=to, quiet=True)
    assert sorted(path.relative_to(to) for path in to.rglob("*")) == before


def test_a_place_that_is_named_when_a_plan_runs_gets_the_result(tmp_path):
    plan = barrow.plan(np.negative, SMALL, quiet=True)
    for _ in range(2):
        run = barrow.run(plan, to=tmp_path / "out.zarr")
        np.testing.assert_array_equal(run.result[...], -SMALL)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr")[...], -SMALL)


@pytest.mark.parametrize("resume", [True, False])
def test_a_whole_result_is_never_replaced_by_another(resume, tmp_path):
    to = tmp_path / "out.zarr"
    barrow.map(np.negative, SMALL, to=to, quiet=True)
    with pytest.raises(OutputError, match="holds another result"):
        barrow.map(np.sqrt, SMALL, to=to, quiet=True, resume=resume)
    np.testing.assert_array_equal(zarr.open_array(to)[...], -SMALL)
    assert not (tmp_path / ".out.zarr.partial").exists()


SCRIPT = """
import os, sys, time, numpy as np, barrow

def slow(x):
    if len(x) == 1:
        print("chunk", flush=True)
        while not os.path.exists(sys.argv[2]):
            time.sleep(0.01)
    return x + 1

plan = barrow.plan(slow, np.ones((4, 50)), to=sys.argv[1], cluster=False, quiet=True)
run = barrow.run(plan.with_chunks(dim_0=1))
print("done", run.metrics["chunks"], flush=True)
"""


def test_of_two_processes_with_one_place_the_second_is_told(tmp_path):
    command = [sys.executable, "-c", SCRIPT, tmp_path / "out.zarr", tmp_path / "go"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "chunk\n"
        second = subprocess.run(command, capture_output=True, text=True)
        (tmp_path / "go").touch()
        assert first.stdout.read().endswith("done 4\n")
    assert second.returncode == 1
    assert "OutputError: Another process is writing" in second.stderr
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr")[...], np.full((4, 50), 2))
