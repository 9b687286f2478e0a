"""Loaded by the interpreter that ``barrow watch`` starts, before the program.

This folder stands in front of ``PYTHONPATH`` only for that. It takes itself out again, so that
the program and its children see the path and the environment as the user left them.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location


def _find_barrow(package: str) -> None:
    """Load the package that is watching, where this environment has none of its own."""
    if PathFinder.find_spec("barrow", sys.path) is not None:
        return
    spec = spec_from_file_location(
        "barrow", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    if spec is not None and spec.loader is not None:
        sys.modules["barrow"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


def _begin() -> None:
    own = os.path.dirname(os.path.abspath(__file__))
    before = os.environ.pop("BARROW_WATCH_PYTHONPATH", None)
    if before is None:
        return
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != own]
    if before:
        os.environ["PYTHONPATH"] = before
    else:
        os.environ.pop("PYTHONPATH", None)
    try:
        _find_barrow(os.path.dirname(os.path.dirname(own)))
        from barrow.recording.joining import join_from_environment

        join_from_environment()
    except Exception as error:  # the program runs all the same
        sys.stderr.write(f"barrow watch: nothing inside the program is recorded: {error}\n")
    # The user may have a module of this name: it was next in line.
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


_begin()
