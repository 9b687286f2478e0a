"""Every name in the right column of "there → here" is one that barrow has."""

import dataclasses
import inspect
import re
from pathlib import Path

import click
import pytest

import barrow
from barrow.cli.main import main
from barrow.sites.cluster import Cluster

PAGES = sorted((Path(__file__).parents[2] / "docs" / "coming-from").glob("*.md"))
FIELDS = ("collider", "ephys", "miniscope", "spatial")
OBJECTS = {"run": barrow.Run, "plan": barrow.Plan, "cluster": Cluster}
NAME = re.compile(rf"^(?:barrow|{'|'.join((*FIELDS, *OBJECTS))})\.[\w.]+")
COMMAND = re.compile(r"^barrow ([a-z -]+)$")
KEYWORD = re.compile(r"(?<![\w\"'.])(\w+)=(?!=)")


def list_names(page):
    """Return what stands in backticks in the right column."""
    rows = [line.split(" | ", 1)[1] for line in page.read_text().splitlines() if " | " in line]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def resolve(path):
    """Return what a dotted name stands for."""
    first, *rest = path.split(".")
    found = barrow if first == "barrow" else getattr(barrow, first, None)
    found = OBJECTS.get(first, found)
    for name in rest:
        if dataclasses.is_dataclass(found) and name in found.__dataclass_fields__:
            return found.__dataclass_fields__[name]
        found = getattr(found, name)
    return found


def list_keywords():
    """Return every argument that any public call takes."""
    modules = [barrow, *(getattr(barrow, field) for field in FIELDS)]
    calls = [getattr(module, name) for module in modules for name in module.__all__]
    return {
        name
        for call in calls
        if callable(call) and not isinstance(call, type(barrow))
        for name in _parameters(call)
    }


def _parameters(call):
    try:
        return inspect.signature(call).parameters
    except ValueError:
        return ()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_name_here_exists(page):
    found = 0
    for text in list_names(page):
        if named := NAME.match(text):
            called = resolve(named[0])
            found += 1
            if text[named.end() : named.end() + 1] == "(":
                parameters = _parameters(called)
                takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
                asked = set(KEYWORD.findall(text))
                assert takes_any or asked <= set(parameters), f"{text}: {asked - set(parameters)}"
        elif command := COMMAND.match(text):
            context, group = click.Context(main), main
            for name in command[1].split():
                group = group.get_command(context, name)
                assert group is not None, f"there is no command {text!r}"
            found += 1
    assert found >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_argument_here_exists(page):
    known = list_keywords()
    for text in list_names(page):
        if re.match(r"^\w+=", text):
            assert KEYWORD.match(text)[1] in known, text
