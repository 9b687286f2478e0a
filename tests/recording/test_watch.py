"""``barrow watch``: any Dask program, unchanged, and a record of what happened."""

import os
import signal
import subprocess
import sys
import venv

import pytest

import barrow

THREADS = """
import sys
import dask.array as da

print("arguments", sys.argv[1:], __name__, __file__ == sys.argv[0])
total = da.ones((500, 500), chunks=50).sum().compute()
print(total)
print("done", file=sys.stderr)
sys.exit(3)
"""

CLUSTERS = """
import dask.array as da
import numpy as np
import xarray as xr
from dask.distributed import Client, LocalCluster

def load(i):
    return np.full(1000, i)

if __name__ == "__main__":
    for _ in range(2):
        options = dict(n_workers=1, threads_per_worker=2, dashboard_address=None)
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            image = xr.DataArray(da.ones((400, 400), chunks=100), dims=("y", "x"))
            print(float((image + 1).mean().compute()))
            odd = client.submit(load, 3, key="k" * 10_000)
            named = client.submit(load, 4, key=("a'; drop table run; --", 1, "\\0"))
            print(client.submit(np.add, odd, named).result().sum())
"""

KILLED = """
import os, signal
from dask.distributed import Client, LocalCluster
import dask

def deadly():
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    dask.config.set({"distributed.scheduler.allowed-failures": 0})
    options = dict(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        client.submit(deadly).result()
"""

WAITING = """
import dask, sys, time

@dask.delayed
def sleep():
    print("began", flush=True)
    time.sleep(60)

dask.compute(sleep(), scheduler="sync")
"""


def run_plainly(script, *arguments):
    return subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True)


def test_output_arguments_and_exit_status_are_those_of_the_program(program, watch):
    script = program(THREADS)
    done, record = watch(script, "--fast", "-m", "x", status=3)
    plain = run_plainly(script, "--fast", "-m", "x")
    assert done.stdout == plain.stdout
    ours = [line for line in done.stderr.splitlines() if line.startswith("barrow: ")]
    assert done.stderr.splitlines() == [*plain.stderr.splitlines(), *ours]
    assert 1 <= len(ours) <= 3
    assert record.facts["exit_status"] == 3
    assert record.status == "failed"
    tasks = record.table("dask_task")
    assert (tasks["outcome"] == "done").all()
    assert len(tasks) >= 100
    assert (tasks["ended"] >= tasks["started"]).all()
    assert record.metrics["peak_bytes"] >= record.metrics["peak_client_bytes"] > 10**7


def test_clusters_made_one_after_another_are_recorded(program, watch):
    done, record = watch(program(CLUSTERS))
    assert done.stdout == "2.0\n7000\n" * 2
    workers = record.query("select * from process where kind = 'worker'")
    assert len(workers) == 2
    # On a busy machine a nanny loses patience with a worker that closes.
    assert set(workers["reason"]) <= {"closed", "killed by signal 9"}
    assert set(workers["threads"]) == {2}
    assert workers["left"].notna().all()
    tasks = record.table("dask_task")
    assert set(tasks["worker"]) <= set(workers["name"])
    assert (tasks["outcome"] == "done").all()
    keys = tasks["key"].tolist()
    assert any(key.startswith("kkk") and "10000 characters" in key for key in keys)
    assert any("drop table" in key for key in keys)
    samples = record.table("sample")
    assert set(workers["name"]) <= set(samples["process"])
    assert "managed_bytes" in samples  # told by heartbeats, of which a short run may have none
    metrics = record.metrics
    states = ("compute", "transfer", "spill", "overhead", "idle", "starting")
    total = sum(metrics[f"{state}_seconds"] for state in states)
    assert total == pytest.approx(metrics["slots"] * metrics["wall_seconds"], rel=0.02)
    assert not [e for e in record.table("event").kind if e in ("watching", "lost")]
    assert record.steps.loc["add", "tasks"] >= 2
    assert record.facts["settings"]["distributed"]["worker"]["memory"]["target"] == 0.6


def test_a_killed_worker_and_a_crash_leave_a_record(program, watch):
    done, record = watch(program(KILLED), status=1)
    assert "KilledWorker" in done.stderr.rpartition("barrow: ")[0]
    assert record.status == "failed"
    reasons = record.query("select reason from process where kind = 'worker'")["reason"]
    # How it ended comes from its nanny, which may be gone before it has told.
    assert {"killed by signal 9", "lost"} & set(reasons)
    (task,) = record.table("dask_task").itertuples()
    assert (task.outcome, task.step, task.attempt) == ("lost", "deadly", 1)
    events = record.table("event").set_index("kind")["message"]
    assert "lost" in events
    assert "it was computing deadly-" in events["computing"]
    assert (record.table("log").level == "ERROR").any()


def test_the_traceback_is_the_programs_own(program, watch):
    script = program("import dask\ndask.delayed(int)('x').compute(scheduler='sync')\n")
    done, record = watch(script, status=1)
    plain = run_plainly(script)
    assert done.stderr.rpartition("barrow: failed")[0] == plain.stderr
    assert record.table("dask_task").outcome.tolist() == ["failed"]


def test_an_interrupt_ends_the_program_and_not_the_record(program, start_watch):
    process, folder = start_watch(program(WAITING))
    with process:
        assert process.stdout.readline() == "began\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in errors
    assert barrow.record(folder).status == "interrupted"


def test_a_program_that_is_killed_leaves_a_record_that_says_so(program, start_watch):
    process, folder = start_watch(program(WAITING))
    with process:
        assert process.stdout.readline() == "began\n"
        os.kill(barrow.record(folder).facts["pid"], signal.SIGKILL)
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    record = barrow.record(folder)
    assert record.status == "killed"
    assert record.metrics["wall_seconds"] > 0


def test_a_module_can_be_watched(program, watch):
    program("import sys\nprint(__name__, sys.argv[1:])\n", "mine.py")
    done, _ = watch("-m", "mine", "--folder", "x")
    assert done.stdout == "__main__ ['--folder', 'x']\n"


def test_the_environment_of_the_program_is_not_changed(program, watch, monkeypatch):
    script = program("import os, sys\nprint(sorted(os.environ.items()), sys.path)\n")
    done, _ = watch(script)
    assert (
        done.stdout
        == subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, cwd=script.parent
        ).stdout
    )


def test_a_folder_that_is_in_use_is_refused(program, watch, tmp_path):
    (tmp_path / "watched").mkdir()
    (tmp_path / "watched" / "mine.txt").touch()
    command = [sys.executable, "-c", "from barrow.cli.main import main; main()"]
    done = subprocess.run(
        [*command, "watch", "--folder", str(tmp_path / "watched"), str(program("print(1)"))],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "is not empty" in done.stderr
    assert done.stdout == ""


def test_a_program_of_another_environment_needs_no_barrow_there(program, watch, tmp_path):
    venv.create(tmp_path / "other", symlinks=True)
    script = program("import sys; print(sys.prefix, 'barrow.recording.joining' in sys.modules)")
    python = tmp_path / "other" / "bin" / "python"
    done, record = watch("--python", python, script)
    assert done.stdout.split() == [str(tmp_path / "other"), "True"]
    assert "nothing inside" not in done.stderr
    assert record.facts["versions"] == {}
    assert record.status == "done"


def test_a_cluster_that_was_there_before_the_program_is_followed(program, watch, start_dask):
    with start_dask(n_workers=1, threads_per_worker=1) as cluster:
        connect = (
            f"from distributed import Client\nwith Client({cluster.scheduler_address!r}) as c:"
        )
        done, record = watch(program(f"{connect}\n    print(c.submit(abs, -7).result())"))
    assert done.stdout.split() == ["7"]
    workers = record.query("select name from process where kind = 'worker'")["name"]
    assert len(workers) == 1
    assert workers[0] in set(record.table("sample")["process"])
    assert record.metrics["tasks_done"] == 1
