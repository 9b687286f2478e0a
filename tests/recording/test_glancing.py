"""A look at a record while it is written, and where runs that go on are found."""

import time

import dask
import numpy as np
from click.testing import CliRunner

import barrow
from barrow.cli.main import main
from barrow.recording.glancing import glance
from barrow.recording.going import announced, find_newest


def test_a_run_that_goes_on_is_found_and_seen_from_outside(tmp_path):
    seen = []

    def look(number):
        deadline = time.monotonic() + 20
        while number == 3 and not seen and time.monotonic() < deadline:
            running = glance(find_newest())
            if running.processes:  # the first samples are there
                seen.extend([CliRunner().invoke(main, ["top", "--once"]).output, running])
        return number

    with barrow.watch(tmp_path / "watched"):
        dask.compute(*[dask.delayed(look)(n) for n in range(4)], scheduler="sync")
    text, running = seen
    assert running.status == "running"
    assert "running for" in text
    assert "client" in [process.kind for process in running.processes]
    assert find_newest() is None
    ended = glance(barrow.record(tmp_path / "watched"))
    assert (ended.status, ended.done) == ("done", 4)
    assert ended.peak_bytes > 10 * 2**20


def test_a_run_of_barrows_own_counts_chunks(tmp_path):
    plan = barrow.plan(np.sqrt, np.ones((64, 2**10)), cluster=False).with_chunks(dim_0=8)
    run = barrow.run(plan, folder=tmp_path / "run")
    seen = glance(barrow.record(run.folder))
    assert (seen.noun, seen.done, seen.planned, seen.failed) == ("chunk", 8, 8, 0)


def test_tasks_that_dask_announced_are_planned(local_cluster, tmp_path):
    with barrow.watch(tmp_path / "watched"):
        local_cluster.client.gather(local_cluster.client.map(abs, range(7), pure=False))
    seen = glance(barrow.record(tmp_path / "watched"))
    assert (seen.done, seen.planned) == (7, 7)
    assert [process.kind for process in seen.processes].count("worker") == 2


def test_what_was_announced_and_is_gone_is_forgotten(tmp_path):
    gone = announced(tmp_path / "record.sqlite")
    gone.__enter__()
    assert find_newest() is None


def test_where_nothing_goes_on_top_says_what_to_do():
    done = CliRunner().invoke(main, ["top"])
    assert done.exit_code == 1
    assert "Name the folder" in done.output
