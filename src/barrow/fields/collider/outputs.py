"""Outputs that are finished: a pickle, and beside it what is known about it, as JSON.

A pickle is opened only if nobody but the user can have written it.
"""

import json
import os
import pickle
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cloudpickle

from barrow.errors import OutputError
from barrow.running.disk import write_whole


def save_output(path: Path, output: Any, about: Mapping[str, Any]) -> None:
    """Write the output, and what is known about it beside it."""
    write_whole(_about_path(path), json.dumps(about, default=str, indent=2) + "\n")
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_bytes(cloudpickle.dumps(output))
        beside.replace(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}.") from None


def find_output(path: Path, key: str | None) -> tuple[Any, dict[str, Any]] | None:
    """Return an output that is already there and what is known about it; None if nothing is.

    Parameters
    ----------
    key
        What tells the work that is asked for from all other.
    """
    if not path.exists():
        return None
    about = _read_about(path)
    if key is None or about.get("key") != key:
        raise OutputError(
            f"{path} holds another output: it was made by another processor, with other settings "
            "or from other files. Choose another place, or move it away."
        )
    if not is_mine(path):
        raise OutputError(f"{path} belongs to somebody else, or others may write it: not opened.")
    return pickle.loads(path.read_bytes()), about


def is_mine(path: Path) -> bool:
    """Return whether nobody but the user can have written a file."""
    status = path.stat()
    is_open = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.geteuid() and not is_open


def _read_about(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(_about_path(path).read_text())
        return found
    except (OSError, ValueError):
        return {}


def _about_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
