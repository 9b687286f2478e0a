"""Loaded by the interpreter that ``barrow watch`` starts, before the program.

This folder stands in front of ``PYTHONPATH`` only for that. It takes itself out again, so that
the program and its children see the path and the environment as the user left them.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec


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
        from barrow.recording.joining import join_from_environment

        join_from_environment()
    except Exception as error:  # the program runs all the same
        sys.stderr.write(f"barrow watch: nothing inside the program is recorded: {error}\n")
    # The user may have a module of this name: it was next in line.
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


_begin()
