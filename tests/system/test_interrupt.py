"""A run that is interrupted or killed ends soon, loses next to nothing, and can go on."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest
import zarr

import barrow

DATA = np.random.default_rng(0).random((12, 50))
# One on a quiet machine; the chunks that are interrupted would take a minute or never end.
SOON_SECONDS = 20.0


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


@pytest.fixture
def interrupts():
    """Let this process hear interrupts, also where a shell in the background has them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def their_client():
    """A cluster that somebody else has started."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=3, processes=False, dashboard_address=":0"
        ) as c,
        Client(c) as client,
    ):
        yield client


def plan_endless(engine, tmp_path, to, **options):
    """Return a plan whose chunks from the sixth on do not end until they are told to."""
    began, release = tmp_path / "began", tmp_path / "release"

    def add(x):
        late = len(x) == 1 and x[0, 0] in DATA[5:, 0]
        if late and not release.exists():
            began.touch()
            while not release.exists():
                time.sleep(0.005)
        return x + 1

    plan = barrow.plan(add, DATA, to=to, **options).with_chunks(dim_0=1)
    threads = 2 if engine != "inline" else 1
    plan = replace(plan, engine=engine, workers=1, threads=threads, budget_bytes=2**28)
    return plan, began, release


def chunk_files(store):
    return sorted(path for path in (store / "c").rglob("*") if path.is_file())


@pytest.mark.parametrize("engine", ["inline", "threads", "dask"])
def test_ctrl_c_ends_a_run_at_once_and_what_was_done_is_kept(
    engine, tmp_path, interrupts, request, capsys
):
    if engine == "dask":
        theirs = request.getfixturevalue("their_client")
        others = theirs.submit(lambda: wait_for((tmp_path / "release").exists) or 7)
    cluster = None if engine == "dask" else False
    to = tmp_path / "out.zarr"
    plan, began, release = plan_endless(engine, tmp_path, to, cluster=cluster)

    def interrupt():
        wait_for(began.exists)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt) as caught:
        barrow.run(plan)
    spent = time.time() - began.stat().st_mtime
    assert spent < SOON_SECONDS
    hint = f"The same call again goes on where this one stopped; or: barrow resume {to}"
    assert caught.value.__notes__ == [hint]
    assert capsys.readouterr().err.endswith(f"{hint}\n")
    assert not to.exists()

    # What still runs is let go now, and comes too late.
    partial = tmp_path / ".out.zarr.partial"
    stored = chunk_files(partial)
    release.touch()
    if engine == "threads":
        wait_for(lambda: not any(t.name.startswith("barrow_") for t in threading.enumerate()))
    if engine == "dask":
        wait_for(lambda: not any(theirs.run(_running, on_error="return").values()))
        assert others.result(timeout=30) == 7
        assert theirs.status == "running"
    assert chunk_files(partial) == stored

    run = barrow.run(plan)
    np.testing.assert_array_equal(run.result[...], DATA + 1)
    # Short chunks travel in batches, and a batch is reported when it ends.
    assert 3 <= run.metrics["chunks_found"] <= 5


def _running(dask_worker):
    return len(dask_worker.state.executing) + len(dask_worker.state.long_running)


SCRIPT = """
import os, sys, time, numpy as np, barrow
from dataclasses import replace

engine = sys.argv[1]

def slow(x):
    if len(x) == 1:
        with open("log", "a") as log:
            log.write(f"{os.getpid()}\\n")
        # In short naps: Python can miss a signal that comes just before it falls asleep.
        end = time.monotonic() + float(os.environ["SECONDS"])
        while time.monotonic() < end:
            time.sleep(0.01)
    return x + 1

plan = barrow.plan(slow, "in.npy", to="out.zarr", cluster=False, quiet="quiet" in sys.argv)
plan = plan.with_chunks(dim_0=1)
workers = 2 if engine == "processes" else 1
plan = replace(plan, engine=engine, workers=workers, budget_bytes=2**28)
print(barrow.run(plan).metrics["chunks_found"])
"""


@pytest.fixture
def start(tmp_path):
    """Start a script with chunks that take a while, and wait until some are under way."""
    np.save(tmp_path / "in.npy", DATA)
    (tmp_path / "script.py").write_text(SCRIPT)

    def start(*arguments, seconds, begun):
        process = subprocess.Popen(
            [sys.executable, "script.py", *arguments],
            cwd=tmp_path,
            env={**os.environ, "SECONDS": str(seconds)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A shell that runs tests in the background has interrupts ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        wait_for(lambda: count(tmp_path) >= begun or process.poll() is not None)
        return process

    return start


def count(folder):
    """Return how many times a chunk was begun."""
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def workers_of(folder):
    pids = map(int, set((folder / "log").read_text().split()))
    return [psutil.Process(pid) for pid in pids]


def is_gone(process):
    # Somebody may still have to take notice of its end.
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_ctrl_c_ends_the_worker_processes_and_leaves_a_hint(start, tmp_path):
    with start("processes", seconds=60, begun=2) as process:
        workers = workers_of(tmp_path)
        began = time.monotonic()
        # As a terminal does, and as people do: to the whole group, and more than once.
        os.killpg(process.pid, signal.SIGINT)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        spent = time.monotonic() - began
    wait_for(lambda: all(map(is_gone, workers)))
    assert process.returncode == -signal.SIGINT
    assert spent < SOON_SECONDS
    assert len(workers) == 2
    assert errors.count("; or: barrow resume out.zarr\n") == 2  # said, and at the exception
    assert not (tmp_path / "out.zarr").exists()


HINT = "The same call again goes on where this one stopped; or: barrow resume out.zarr\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["threads"], HINT), (["inline", "quiet"], "")],
    ids=["threads", "quiet"],
)
def test_sigterm_ends_a_run_like_ctrl_c(arguments, said, start):
    with start(*arguments, seconds=60, begun=1) as process:
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (128 + signal.SIGTERM, said)


def test_after_a_kill_of_the_client_its_workers_go_and_only_what_was_in_flight_is_redone(
    start, tmp_path
):
    with start("processes", seconds=0.15, begun=7) as process:
        workers = workers_of(tmp_path)
        process.kill()
    wait_for(lambda: all(map(is_gone, workers)))
    begun = count(tmp_path)
    with start("inline", seconds=0, begun=begun) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    found = int(output)
    # Two were being computed, and two may have been on their way to the client.
    assert begun - found <= 4
    assert count(tmp_path) - begun == len(DATA) - found
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "out.zarr")[...], DATA + 1)
