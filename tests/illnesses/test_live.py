"""Stuck is told from slow while it happens, and what is stuck is freed."""

import numpy as np
import pytest

import barrow
from barrow.running import unsticking
from soak.ailing_memory import hoard
from soak.illnesses import open_client
from soak.pieces import double, in_order, is_paused, spin, wait_until
from soak.sick import SMALL

ONE = {**SMALL, "n_workers": 1}


def find(code, folder):
    """Return what was found with a code, by now."""
    return next((found for found in barrow.diagnose(folder) if found.code == code), None)


@pytest.fixture
def stuck_client():
    """A cluster whose only worker is paused, and holds nothing that could go to disk."""
    with open_client(ONE) as client:
        in_order(client, (hoard, 345))
        wait_until(lambda: is_paused(client))
        yield client


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(unsticking, "STUCK_SECONDS", 1.0)


def test_a_run_on_workers_that_are_paused_for_ever_frees_them_and_ends(
    impatient, stuck_client, tmp_path
):
    plan = barrow.plan(np.sqrt, np.full((8, 8), 9.0), cluster=stuck_client)
    run = barrow.run(plan, cluster=stuck_client, folder=tmp_path / "run")
    assert (run.result == 3).all()
    stuck = barrow.record(run.folder).table("event").query("kind == 'stuck'")
    assert [message.split()[-1] for message in stuck.message] == ["trim.", "restart."]


def test_a_watched_program_is_told_that_it_is_stuck_and_left_alone(stuck_client, tmp_path):
    folder = tmp_path / "run"
    with barrow.watch(folder):
        futures = stuck_client.map(double, range(4), pure=False)
        found = wait_until(lambda: find("MEM04", folder))
        assert "Worker 0 is paused" in found.claim
        assert is_paused(stuck_client)
        stuck_client.cancel(futures, force=True)


def test_a_task_that_computes_for_long_is_called_slow(tmp_path, monkeypatch):
    monkeypatch.setattr("barrow.diagnosing.rules.workers.LONG_SECONDS", 2.5)
    folder = tmp_path / "run"
    with open_client(ONE) as client, barrow.watch(folder):
        future = client.submit(spin, 300, pure=False)
        found = wait_until(lambda: find("WRK07", folder))
        assert found.claim.startswith("'spin' has run on worker 0")
        assert "slow, not stuck" in found.claim
        client.restart_workers(list(client.scheduler_info()["workers"]))
        future.cancel()
