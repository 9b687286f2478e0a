"""Runs of barrow's own leave the same tables as a watched program."""

import os
import threading
import time

import numpy as np
import pytest

import barrow


def slow(x):
    time.sleep(0.05)
    return x + 1


def check_times(metrics):
    parts = "read compute write starting idle overhead"
    total = sum(metrics[f"{part}_seconds"] for part in parts.split())
    assert total == pytest.approx(metrics["held_seconds"], rel=0.02)
    slots = metrics["workers"] * metrics["threads"]
    assert metrics["held_seconds"] == pytest.approx(slots * metrics["wall_seconds"], rel=0.02)


def test_a_run_of_a_moment_has_one_sample(tmp_path):
    plan = barrow.plan(np.sqrt, np.ones((4, 5)))
    run = barrow.run(plan, folder=tmp_path / "run")
    record = barrow.record(run.folder)
    # Other tests may have left children here: those are followed as well.
    (process,) = record.query(f"select * from process where pid = {os.getpid()}").itertuples()
    assert process.kind == "client"
    assert list(record.table("sample")["process"]).count(process.name) == 1
    assert record.facts["kind"] == "run"
    assert record.status == "done"
    assert run.metrics["peak_bytes"] > 10**7
    check_times(run.metrics)


def test_the_times_of_threads_add_up_to_slots_and_wall(tmp_path):
    plan = barrow.plan(slow, np.ones((20, 5)), cluster=False).with_chunks(dim_0=1)
    run = barrow.run(plan, folder=tmp_path / "run")
    assert run.metrics["compute_seconds"] >= 1.0
    check_times(run.metrics)
    samples = barrow.record(run.folder).table("sample")
    assert len(samples) > 2
    assert samples["time"].is_monotonic_increasing


def test_worker_processes_are_sampled_and_known_as_workers(local_cluster, tmp_path):
    plan = barrow.plan(slow, np.ones((20, 5)), cluster=local_cluster).with_chunks(dim_0=1)
    run = barrow.run(plan, folder=tmp_path / "run")
    record = barrow.record(run.folder)
    kinds = record.table("process").groupby("kind").size()
    assert kinds["client"] == 1
    assert kinds["worker"] >= 1
    assert set(record.table("sample").process) >= set(
        record.query("select name from process where kind = 'worker'").name
    )
    check_times(run.metrics)


def test_what_libraries_do_in_threads_of_their_own_counts_as_used():
    def work_elsewhere(block):
        thread = threading.Thread(target=burn, args=(0.3,))
        thread.start()
        thread.join()
        return block

    run = barrow.run(barrow.plan(work_elsewhere, np.ones(4), quiet=True, cluster=False))
    assert run.metrics["cpu_seconds"] < 0.2 < run.metrics["process_cpu_seconds"]
    assert run.metrics["efficiency"] > 0


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
