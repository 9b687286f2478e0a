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
