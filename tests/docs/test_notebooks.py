"""The notebooks have the code of the tutorials, ran without an error, and run today."""

import runpy
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
MAKING = runpy.run_path(str(NOTEBOOKS / "make.py"))
QUICKEST = "spatial"
pytestmark = pytest.mark.timeout(600)


def codes(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("name", MAKING["NAMES"])
def test_a_notebook_is_its_tutorial_executed(name):
    kept = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    now = MAKING["make_notebook"](name)
    assert [cell.source for cell in kept.cells] == [cell.source for cell in now.cells], (
        "The tutorial has changed: make notebooks"
    )
    outputs = [output for cell in kept.cells for output in cell.get("outputs", ())]
    assert all(cell.execution_count for cell in kept.cells if cell.cell_type == "code")
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs), "no picture"


def test_a_notebook_runs_today():
    ran = MAKING["execute"](MAKING["make_notebook"](QUICKEST))
    assert [cell.execution_count for cell in ran.cells if cell.cell_type == "code"] == [
        *range(1, len(codes(ran)) + 1)
    ]
