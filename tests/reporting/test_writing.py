"""Reports as files: when they are written, by whom, and what happens if they cannot be."""

import json
import subprocess
import sys

import numpy as np
import pytest

import barrow
from barrow import explaining
from barrow.errors import OutputError
from barrow.reporting.costs import is_worth_its_time

KILLED_AT_HALF = """
import os, time
import numpy as np
import barrow

is_armed = []

def work(x):
    if is_armed and x[0, 0] == 5:
        time.sleep(0.6)  # what was done before is now in the record
    if is_armed and x[0, 0] == 6:
        os.kill(os.getpid(), 9)
    return x

data = np.repeat(np.arange(10.0), 8).reshape(10, 8)
plan = barrow.plan(work, data, to="out.zarr", cluster=False, quiet=True).with_chunks(dim_0=1)
is_armed.append(True)
barrow.run(plan)
"""


def halve(x):
    return x / 2


@pytest.fixture
def plan():
    return barrow.plan(halve, np.ones((40, 50)), cluster=False, quiet=True)


@pytest.fixture
def reports_cost_nothing(monkeypatch):
    """As if all runs were long: reports are written unasked."""
    monkeypatch.setattr(explaining, "is_worth_its_time", lambda *_: True)


def test_a_report_is_written_beside_the_record_and_its_path_returned(plan, tmp_path):
    run = barrow.run(plan, folder=tmp_path / "run")
    page = barrow.report(run.folder)
    assert page == run.folder / "report.html"
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads((run.folder / "report.json").read_text())["name"] == "halve"


def test_nothing_is_left_beside_a_record_that_was_read(plan, tmp_path):
    run = barrow.run(plan, folder=tmp_path / "run")
    before = {path.name for path in run.folder.iterdir()}
    barrow.report(run.folder)
    after = {path.name for path in run.folder.iterdir()}
    assert after - before == {"report.html", "report.json"}


def test_a_short_run_writes_no_report_until_it_is_asked_for(plan, tmp_path):
    run = barrow.run(plan, folder=tmp_path / "run")
    assert not (run.folder / "report.html").exists()
    assert run.report_path.exists()


def test_a_run_without_a_place_has_a_report_too(plan):
    assert barrow.run(plan).report_path.exists()


def test_a_longer_run_writes_its_report_unasked(plan, tmp_path, reports_cost_nothing):
    run = barrow.run(plan, to=tmp_path / "half.zarr")
    assert (tmp_path / "half.zarr" / ".barrow" / "report.html").exists()
    assert run.report_path.parent == run.folder


def test_a_run_that_fails_leaves_a_report_that_says_so(tmp_path, reports_cost_nothing):
    hurt = []

    def refuse(x):
        if hurt and x[0, 0] == 3:
            raise ValueError("no photons")
        return x

    data = np.repeat(np.arange(5.0), 4).reshape(5, 4)
    plan = barrow.plan(refuse, data, to=tmp_path / "out.zarr", cluster=False, quiet=True)
    hurt.append(True)
    with pytest.raises(ValueError, match="no photons"):
        barrow.run(plan.with_chunks(dim_0=1))
    (page,) = tmp_path.glob(".out.zarr.partial/.barrow/report.html")
    assert "&#39;refuse&#39; failed after" in page.read_text()


def test_a_report_of_the_part_before_does_not_outlive_the_end(plan, tmp_path):
    run = barrow.run(plan, folder=tmp_path / "run")
    (run.folder / "report.html").write_text("of an earlier part")
    explaining.write_unasked(run.folder, run_seconds=0.01, chunks=1)
    assert not (run.folder / "report.html").exists()


def test_a_run_does_not_fail_for_want_of_a_report(
    plan, tmp_path, reports_cost_nothing, monkeypatch
):
    def fail(folder):
        raise OSError("the disk is full")

    monkeypatch.setattr(explaining, "write_report", fail)
    with pytest.warns(UserWarning, match="its report could not be written: the disk is full"):
        run = barrow.run(plan, folder=tmp_path / "run")
    assert run.result[0, 0] == 0.5


def test_a_place_that_cannot_be_written_is_a_clear_error(plan, tmp_path):
    run = barrow.run(plan, folder=tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        barrow.report(run.folder, to=tmp_path / "file")


def test_a_run_that_was_killed_at_half_has_a_report_that_says_so(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED_AT_HALF], cwd=tmp_path)
    assert killed.returncode == -9
    assert not (tmp_path / "out.zarr").exists()
    page = barrow.report(tmp_path / "out.zarr").read_text()
    assert "killed before its end" in page
    headline = json.loads(next(tmp_path.glob(".*/.barrow/report.json")).read_text())["headline"]
    assert headline.startswith("'work' was killed after ")
    assert "the same call again takes it up: 6 of 10 chunks are done and stay" in headline


def test_an_unasked_report_takes_a_small_share_of_its_run():
    assert not is_worth_its_time(1.0, 1)
    assert is_worth_its_time(60.0, 10_000)
