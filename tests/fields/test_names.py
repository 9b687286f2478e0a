"""A science has one module, whichever way it is imported."""

import importlib

import pytest

import barrow


@pytest.mark.parametrize("name", ["collider", "ephys", "miniscope", "spatial"])
def test_a_science_is_one_module_under_both_names(name):
    short = importlib.import_module(f"barrow.{name}")
    assert short is importlib.import_module(f"barrow.fields.{name}")
    assert short is getattr(barrow, name)
