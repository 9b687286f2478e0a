"""Runs on a Dask cluster that somebody else started, and faults there."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import replace

import dask
import numpy as np
import pytest
from distributed import Client

import barrow
from barrow.errors import ClusterError
from barrow.model.applied import apply_step
from barrow.model.site import MEMORY
from barrow.running import lookout, recovery
from barrow.sites.attached import attach

DATA = np.random.default_rng(0).integers(0, 255, (64, 64, 64)).astype("f8")
MIB = 2**20


@pytest.fixture(scope="module")
def nannied(start_dask):
    """Two workers with nannies and small limits, as many start them."""
    # Where much else goes on, a nanny takes long to replace a worker; Dask gives up soon.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        start_dask(n_workers=2, threads_per_worker=2, memory_limit="1GB") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def foreign(nannied):
    """The client of a cluster with all its workers."""
    nannied.wait_for_workers(2, timeout=60)
    with nannied.as_current():
        yield nannied


@pytest.fixture
def start_bare(tmp_path):
    """Start a scheduler or workers in processes of their own, which nobody replaces."""
    place = tmp_path / "scheduler.json"
    started = []

    def start(kind, *options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        command += ["--scheduler-file", str(place), "--no-dashboard"]
        started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        return started[-1]

    def start_all(workers):
        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
        await_that(lambda: place.exists() and place.read_text().endswith("}"))
        for _ in range(workers):
            start("worker", "--no-nanny", "--nthreads", "1", "--memory-limit", "1GB")
        return scheduler, json.loads(place.read_text())["address"]

    with ExitStack() as stack:

        def connect(workers):
            scheduler, address = start_all(workers)
            client = stack.enter_context(Client(address))
            client.wait_for_workers(workers, timeout=60)
            return scheduler

        yield connect
    for process in started:
        process.kill()
        process.wait()


def await_that(is_so, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def planned(func, *, frames=8, budget=100 * MIB, **options):
    """Return a plan for a function that was never tried out, in chunks of a few frames."""
    plan = barrow.plan(lambda x: x + 1, DATA, quiet=True, name="lies", **options)
    assert plan.engine == "dask"
    apply = plan.target.read
    target = apply_step(replace(apply.step, func=func), apply.inputs, apply.form)
    chunks = {"dim_0": frames, "dim_1": 64, "dim_2": 64}
    return replace(
        plan, target=target, chunks=chunks, strides={}, stored_chunks={}, budget_bytes=budget
    )


def test_chunks_of_a_worker_that_was_killed_are_done_again(foreign, tmp_path):
    def once(x):
        if x[0, 0, 0] == DATA[24, 0, 0] and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x + 1

    run = barrow.run(planned(once))
    assert np.array_equal(run.result, DATA + 1)
    assert run.metrics["lost"] > 0
    assert run.metrics["split"] == 0


def test_a_chunk_that_always_kills_is_named_and_costs_nobody_else_anything(
    foreign, tmp_path, monkeypatch
):
    monkeypatch.setattr(recovery, "MOST_LOSSES_AT_ALL", 3)
    deaths = tmp_path / "deaths"

    def kills(x):
        if x[0, 0, 0] == DATA[24, 0, 0]:
            with deaths.open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return x + 1

    with Client(foreign.scheduler.address, set_as_default=False) as neighbour:
        kept = neighbour.map(lambda n: n + 1, range(20))
        with pytest.raises(ClusterError, match=r"workers died while they had chunk 3 \(\[24:32"):
            barrow.run(replace(planned(kills), cuttable=()))
        assert neighbour.gather(kept) == [n + 1 for n in range(20)]
    # Dask alone would have tried four workers each time.
    assert len(deaths.read_text()) == 4
    foreign.wait_for_workers(2, timeout=60)
    assert np.array_equal(barrow.run(planned(np.negative)).result, -DATA)


def test_a_hidden_allocation_beyond_the_limit_is_refused_and_the_chunk_split(foreign):
    def hungry(x):
        if len(x) > 4:
            np.ones(250 * 10**6)
        return x + 1

    run = barrow.run(planned(hungry))
    assert np.array_equal(run.result, DATA + 1)
    assert run.metrics["split"] > 0
    assert run.metrics["lost"] == 0


def test_an_allocation_that_the_nanny_would_not_survive_is_refused_as_well(foreign):
    def hungry(x):
        if len(x) > 4:
            np.ones(105 * 10**6)
        return x + 1

    run = barrow.run(planned(hungry, budget=550 * MIB))
    assert np.array_equal(run.result, DATA + 1)
    assert run.metrics["split"] > 0
    assert run.metrics["lost"] == 0


def test_tasks_that_do_not_fit_together_run_one_after_the_other(foreign, tmp_path):
    def large(x):
        mine = tmp_path / f"{os.getpid()}"
        with mine.open("x"):  # fails if another is at work in this process
            time.sleep(0.02)
        mine.unlink()
        return x + 1

    plan = planned(large, budget=550 * MIB)
    assert plan.threads == 2
    run = barrow.run(replace(plan, threads=1))
    assert np.array_equal(run.result, DATA + 1)


def test_a_worker_that_comes_back_offers_its_memory_again(foreign):
    def offered():
        workers = foreign.sync(foreign.scheduler.identity)["workers"]
        return {address: w["resources"].get(MEMORY) for address, w in workers.items()}

    with attach(foreign) as cluster, cluster.hosting("a-run"):
        before = offered()
        assert all(before.values())
        lost = min(before)
        foreign.run(os._exit, 1, workers=[lost], on_error="ignore")
        await_that(lambda: lost not in offered() and len(offered()) == 2)
        await_that(lambda: all(offered().values()))


def test_a_worker_that_stands_still_for_a_while_does_no_harm(foreign, tmp_path):
    def named(x):
        (tmp_path / f"{os.getpid()}.pid").touch()  # a name is whole at once, content is not
        return x + 1

    stopped = []

    def stop():
        await_that(lambda: any(tmp_path.glob("*.pid")))
        stopped.append(int(next(tmp_path.glob("*.pid")).stem))
        os.kill(stopped[0], signal.SIGSTOP)
        threading.Timer(1.0, os.kill, (stopped[0], signal.SIGCONT)).start()

    helper = threading.Thread(target=stop)
    helper.start()
    run = barrow.run(planned(named, frames=1))
    helper.join()
    assert stopped
    assert np.array_equal(run.result, DATA + 1)
    assert run.metrics["lost"] == 0


def test_workers_that_pause_are_waited_for(foreign):
    def set_pause(share, dask_worker):
        dask_worker.memory_manager.memory_pause_fraction = share

    plan = planned(np.negative)
    foreign.run(set_pause, 1e-6)

    def states():
        return {w["status"] for w in foreign.scheduler_info(n_workers=-1)["workers"].values()}

    await_that(lambda: states() == {"paused"})
    threading.Timer(0.5, foreign.run, (set_pause, 0.8)).start()
    run = barrow.run(plan)
    assert np.array_equal(run.result, -DATA)
    await_that(lambda: states() == {"running"})


def test_a_worker_that_nobody_replaces_is_done_without(start_bare, tmp_path):
    start_bare(workers=2)

    def once(x):
        if x[0, 0, 0] == DATA[24, 0, 0] and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x + 1

    run = barrow.run(planned(once))
    assert np.array_equal(run.result, DATA + 1)


def test_when_all_workers_are_gone_the_wait_is_bounded_and_what_was_done_is_kept(
    start_bare, tmp_path, monkeypatch, capfd
):
    start_bare(workers=1)
    monkeypatch.setattr(lookout, "PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(lookout, "TELL_SECONDS", 0.0)

    def last(x):
        if x[0, 0, 0] == DATA[24, 0, 0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return x + 1

    plan = planned(last, to=tmp_path / "out.zarr")
    plan = replace(plan, options={**plan.options, "quiet": False})
    with pytest.raises(ClusterError, match=r"Waited .* for workers .* none came") as caught:
        barrow.run(plan)
    assert "finished is kept" in str(caught.value)
    assert "0 workers" in capfd.readouterr().err


def test_a_scheduler_that_is_killed_ends_the_run_within_seconds(start_bare, tmp_path, monkeypatch):
    monkeypatch.setattr(lookout, "RECONNECT_SECONDS", 0.5)
    scheduler = start_bare(workers=1)
    marker = tmp_path / "begun"

    def slow(x):
        marker.touch()
        time.sleep(0.2)
        return x + 1

    def kill():
        await_that(marker.exists)
        scheduler.kill()

    helper = threading.Thread(target=kill)
    plan = planned(slow, frames=1)
    helper.start()
    began = time.monotonic()
    with pytest.raises(ClusterError, match=r"The scheduler at tcp://127\.0\.0\.1:\d+ is gone"):
        barrow.run(plan)
    helper.join()
    assert time.monotonic() - began < 60


def test_a_cluster_that_is_closed_in_mid_run_is_one_clear_error(start_dask, tmp_path):
    marker = tmp_path / "begun"

    def slow(x):
        marker.touch()
        time.sleep(0.05)
        return x + 1

    with (
        start_dask(n_workers=1, threads_per_worker=1, processes=False) as cluster,
        Client(cluster) as client,
        client.as_current(),
    ):
        plan = planned(slow, frames=1)

        def close():
            await_that(marker.exists)
            cluster.close()

        helper = threading.Thread(target=close)
        helper.start()
        with pytest.raises(ClusterError, match="is gone"):
            barrow.run(plan)
        helper.join()
