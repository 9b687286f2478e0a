"""``barrow plan``: shows, and leaves nothing behind."""

import json

import pytest
from click.testing import CliRunner

from barrow.cli.main import main


@pytest.fixture
def call(folder):
    def run(*arguments):
        done = CliRunner().invoke(main, list(map(str, arguments)))
        assert done.exit_code == 0, done.output
        return done.output

    return run


def test_the_plan_is_printed_and_nothing_is_written(call, folder):
    before = {path.name for path in folder.iterdir()}
    output = call("plan", "mine.py:scale", "image.zarr", "--to", "out.zarr")
    assert output.startswith("Plan for 'scale'")
    assert "c 3 × y 40 × x 50" in output
    assert {path.name for path in folder.iterdir()} - before <= {"__pycache__"}


def test_the_plan_can_be_json(call):
    found = json.loads(call("plan", "numpy:sqrt", "image.zarr", "--json", "--workers", "0"))
    assert found["lengths"] == {"c": 3, "y": 40, "x": 50}
    assert found["engine"] == "inline"


def test_a_saved_plan_is_used_again(call, folder):
    saved = json.loads(call("plan", "numpy:sqrt", "image.zarr", "--json", "--workers", "0"))
    saved["chunks"]["y"] = 16
    (folder / "plan.json").write_text(json.dumps(saved))
    again = json.loads(
        call("plan", "numpy:sqrt", "image.zarr", "--json", "--workers", "0", "--like", "plan.json")
    )
    assert again["chunks"]["y"] == 16
    call("map", "numpy:sqrt", "image.zarr", "--to", "out.zarr", "--like", "plan.json", "--quiet")
    kept = json.loads((folder / "out.zarr" / ".barrow" / "plan.json").read_text())
    assert kept["chunks"]["y"] == 16
    assert kept["measured"]["chunks"] == 3


def test_a_plan_that_does_not_fit_is_told_without_a_traceback(folder):
    (folder / "plan.json").write_text("{}")
    arguments = ["plan", "numpy:sqrt", "image.zarr", "--like", "plan.json"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 1
    assert "plan.json is not a plan" in done.output
