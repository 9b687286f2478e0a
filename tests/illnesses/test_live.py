"""Stuck is told from slow while it happens, and what is stuck is freed."""

import time

import numpy as np
import pytest

import barrow
from barrow.running import unsticking
from soak.ailing_memory import hoard
from soak.illnesses import open_client
from soak.pieces import double, in_order, spin
from soak.sick import SMALL

ONE = {**SMALL, "n_workers": 1}


def wait_until(is_so, seconds=20.0):
    last = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < last, "it did not happen in time"
        time.sleep(0.05)


def is_paused(client):
    workers = client.scheduler_info()["workers"].values()
    return any(worker["status"] == "paused" for worker in workers)


def codes(folder):
    return {finding.code for finding in barrow.diagnose(folder)}


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(unsticking, "STUCK_SECONDS", 1.0)


def test_a_run_on_workers_that_are_paused_for_ever_frees_them_and_ends(impatient, tmp_path):
    with open_client(ONE) as client:
        in_order(client, (hoard, 345))
        wait_until(lambda: is_paused(client))
        run = barrow.run(
            barrow.plan(np.sqrt, np.full((8, 8), 9.0), cluster=client),
            cluster=client,
            folder=tmp_path / "run",
        )
    assert (run.result == 3).all()
    stuck = barrow.record(run.folder).table("event").query("kind == 'stuck'")
    assert [message.split()[-1] for message in stuck.message] == ["trim.", "restart."]


def test_a_watched_program_is_told_that_it_is_stuck_and_left_alone(impatient, tmp_path):
    with open_client(ONE) as client, barrow.watch(tmp_path / "run"):
        in_order(client, (hoard, 345))
        wait_until(lambda: is_paused(client))
        futures = client.map(double, range(4), pure=False)
        wait_until(lambda: "MEM04" in codes(tmp_path / "run"))
        assert is_paused(client)
        client.cancel(futures, force=True)


def test_a_task_that_computes_for_long_is_called_slow(tmp_path, monkeypatch):
    monkeypatch.setattr("barrow.diagnosing.rules.workers.LONG_SECONDS", 2.5)
    folder = tmp_path / "run"
    with open_client(ONE) as client, barrow.watch(folder):
        future = client.submit(spin, 30, pure=False)
        wait_until(lambda: "WRK07" in codes(folder))
        (found,) = barrow.diagnose(folder)
        assert "slow, not stuck" in found.claim
        assert "'spin'" in found.claim
        client.restart_workers(list(client.scheduler_info()["workers"]))
        future.cancel()
