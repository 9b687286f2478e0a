"""Find the function and the data that a command line names."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import click

import barrow

FILE_MODULE = "barrow_function_file"
"""What the module of a function's file is called; no other module has this name."""


def load_function(text: str) -> Callable[..., Any]:
    """Return the function meant by ``module:name`` or ``path/to/file.py:name``.

    Examples
    --------
    >>> load_function("numpy:linalg.norm").__name__
    'norm'
    """
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise click.UsageError(
            f"{text!r} names no function. Write module:function, or path/to/file.py:function."
        )
    found: Any = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    for part in name.split("."):
        if not hasattr(found, part):
            raise click.UsageError(f"{place} has no function {name!r}.")
        found = getattr(found, part)
    if not callable(found):
        raise click.UsageError(f"{name!r} in {place} is not a function, but {found!r}.")
    function: Callable[..., Any] = found
    return function


def load_source(text: str) -> Any:
    """Return the data at a path; ``path::name`` chooses one array of a file or group."""
    path, separator, name = text.rpartition("::")
    if not separator or Path(text).exists():
        return barrow.open(text)
    return barrow.open(path, name=name)


@contextmanager
def open_workers(workers: int | None) -> Iterator[Any]:
    """Yield what to give as ``cluster=`` for a number of worker processes."""
    if workers is None:
        yield None
    elif workers == 0:
        yield False
    else:
        with barrow.cluster("local", workers=workers, threads=1) as cluster:
            yield cluster


def _load_module(name: str) -> ModuleType:
    # As with `python -m`: what lies in this folder can be named.
    sys.path.insert(0, str(Path.cwd()))
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, but something that it needs is not
        raise click.UsageError(
            f"There is no module {error.name!r}, neither installed nor in this folder. "
            "A file is named with its ending: path/to/file.py:function."
        ) from None


def _load_file(path: Path) -> ModuleType:
    import cloudpickle

    if not path.is_file():
        raise click.UsageError(f"There is no file {str(path)!r}.")
    # As with `python file.py`: what lies beside it can be imported.
    sys.path.insert(0, str(path.parent.absolute()))
    spec = spec_from_file_location(FILE_MODULE, path.absolute())
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[FILE_MODULE] = module
    # No worker could import a module of this name, so its functions travel as they are.
    cloudpickle.register_pickle_by_value(module)
    spec.loader.exec_module(module)
    return module
