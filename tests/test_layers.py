"""Imports go one way: from the face to the nouns, and never back."""

import ast
from pathlib import Path

import pytest

import barrow

ROOT = Path(barrow.__file__).parent

# Each may import from itself and from what stands in a lower row.
ROWS = [
    {"cli"},
    {"collider", "ephys", "miniscope", "spatial"},
    {"fields"},
    {"studying"},
    {"api"},
    {"resuming"},
    {"pipelines"},
    {"composing", "executing"},
    {"equipping", "reusing"},
    {
        "queueing",
        "remembering",
        "steering",
        "leftovers",
        "presenting",
        "observing",
        "examining",
        "live",
    },
    {"explaining"},
    {"forecasting"},
    {
        "sources",
        "probing",
        "planning",
        "sites",
        "running",
        "recording",
        "diagnosing",
        "reporting",
        "simulating",
    },
    {"model"},
    {"shared"},
    {"units", "errors", "places", "pinning", "ownership"},
]
LEVEL = {name: level for level, row in enumerate(ROWS) for name in row}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imported_parts(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            # `from barrow.running import folders` means barrow.running as well.
            names = [node.module or ""]
            if node.module == "barrow":
                names = [f"barrow.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("barrow.")}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_its_own_part_or_from_below(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for other in imported_parts(path) - {part}:
        assert LEVEL[other] > LEVEL[part], f"{part} must not import {other}"


def test_every_part_has_its_place_in_the_layers():
    parts = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES}
    assert parts <= set(LEVEL)
