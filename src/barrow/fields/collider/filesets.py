"""What to read: files by dataset, in all the ways in which people write that down.

A fileset is a path or a glob, a list of them, a dictionary of either by dataset, coffea's
``{"dataset": {"files": {path: tree}, "metadata": {...}}}``, or a JSON file with one of these.
"""

import glob
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from barrow.errors import InputError

DATASET = "events"
"""What files are called that belong to no dataset."""


@dataclass(frozen=True)
class Entry:
    """One file of a fileset."""

    dataset: str
    path: str
    tree: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Of its dataset, and of the file itself."""


def list_files(fileset: Any, treename: str = "Events") -> list[Entry]:
    """Return the files of a fileset, in its order.

    Examples
    --------
    >>> [e.path for e in list_files({"data": ["a.root", "b.root"]})]
    ['a.root', 'b.root']
    >>> list_files({"mc": {"files": {"a.root": "Tree"}, "metadata": {"xsec": 2.0}}})
    [Entry(dataset='mc', path='a.root', tree='Tree', metadata={'xsec': 2.0})]
    """
    if isinstance(fileset, (str, PathLike)) and fspath(fileset).endswith(".json"):
        fileset = _load(Path(fileset))
    if not isinstance(fileset, Mapping):
        fileset = {DATASET: fileset}
    found = []
    for dataset, given in fileset.items():
        metadata: Mapping[str, Any] = {}
        tree = treename
        if isinstance(given, Mapping) and "files" in given:
            metadata = given.get("metadata") or {}
            tree = given.get("treename") or treename
            given = given["files"]
        found += [
            Entry(str(dataset), path, own or tree, {**metadata, **more})
            for path, own, more in _list_paths(given, str(dataset))
        ]
    if not found:
        raise InputError("There is nothing to read: the fileset is empty.")
    return found


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"The fileset {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"The fileset {path} is not JSON: {error}.") from None


def _list_paths(given: Any, dataset: str) -> Iterator[tuple[str, str | None, Mapping[str, Any]]]:
    """Yield path, tree and metadata of each file."""
    if isinstance(given, (str, PathLike)):
        given = [given]
    if isinstance(given, Mapping):
        for path, tree in given.items():
            if isinstance(tree, Mapping):
                yield fspath(path), tree.get("object_path"), tree.get("metadata") or {}
            else:
                yield from ((name, tree, {}) for name in _expand(fspath(path), dataset))
    elif isinstance(given, (list, tuple, set, frozenset)):
        for item in sorted(given) if isinstance(given, (set, frozenset)) else given:
            path, tree = _divide(item, dataset)
            yield from ((name, tree, {}) for name in _expand(path, dataset))
    else:
        raise InputError(
            f"The files of '{dataset}' are {given!r}. Give a path, a glob, a list of them, or "
            "{path: tree}."
        )


def _divide(item: Any, dataset: str) -> tuple[str, str | None]:
    """Return path and tree of ``path`` or ``path.root:tree``."""
    if not isinstance(item, (str, PathLike)):
        raise InputError(f"{item!r} among the files of '{dataset}' is not a path.")
    path, dot, tree = fspath(item).rpartition(".root:")
    return (f"{path}.root", tree) if dot and tree else (fspath(item), None)


def _expand(path: str, dataset: str) -> list[str]:
    if "://" in path or not glob.has_magic(path) or Path(path).exists():
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise InputError(f"No file matches {path!r} of '{dataset}'.")
    return found
