"""``barrow report`` and ``barrow compare``."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import barrow
from barrow.cli.main import main


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A working directory with two stored results."""
    monkeypatch.chdir(tmp_path)
    data = np.ones((6, 50))
    for name, func in (("one.zarr", np.sqrt), ("two.zarr", np.negative)):
        plan = barrow.plan(func, data, to=name, cluster=False, quiet=True)
        barrow.run(plan.with_chunks(dim_0=2))
    return tmp_path


def run_barrow(*arguments, status=0):
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == status, done.output
    return done.output


def test_a_report_is_told_and_written(stored):
    said = run_barrow("report", "one.zarr", "--trace")
    assert said.startswith("'sqrt' took ")
    assert "Report in one.zarr/.barrow/report.html" in said
    folder = stored / "one.zarr" / ".barrow"
    assert (folder / "report.html").exists()
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]


def test_a_report_can_be_data_on_the_output(stored):
    assert json.loads(run_barrow("report", "one.zarr", "--json"))["name"] == "sqrt"
    assert not (stored / "one.zarr" / ".barrow" / "report.html").exists()


def test_a_report_can_go_elsewhere(stored):
    run_barrow("report", "one.zarr", "--to", "new/folder")
    assert (stored / "new" / "folder" / "report.html").exists()


def test_two_runs_are_compared(stored):
    said = run_barrow("compare", "one.zarr", "two.zarr", "--html", "both.html")
    assert said.startswith("The second run is ")
    assert "versions: the same" in said
    assert "<title>Two runs</title>" in (stored / "both.html").read_text()


def test_a_folder_without_a_record_is_a_clear_error(stored):
    assert "There is no record in nowhere" in run_barrow("report", "nowhere", status=1)
