"""What is kept of each step, so that a run can be taken up anywhere.

A step is known by its parameters and by the steps it reads from. What it has found is
written beside its place and moved there when it is whole: it is there, or it is not.
"""

import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import OutputError
from barrow.fields.miniscope.settings import key_of
from barrow.sources.identity import identify_text

VERSION = 2
"""Of what steps compute; a new one makes old checkpoints void."""


@dataclass
class Checkpoints:
    """The steps of one run, in a folder."""

    folder: Path
    redone: list[str] = field(default_factory=list)
    """Names of steps that were computed; the others were found."""

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"{str(self.folder)!r} cannot be made: {error.strerror}. "
                "Give another folder as to=."
            ) from None

    def key(self, name: str, params: Any, *before: str) -> str:
        """Return by what a step is known."""
        return identify_text(VERSION, name, key_of(params), *before)

    def arrays(
        self, name: str, key: str, compute: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return the arrays of a step: found, or computed and kept."""
        place = self.folder / f"{name}.npz"
        found = _load(place, key)
        if found is not None:
            return found
        made = compute()
        self.redone.append(name)
        half = place.with_suffix(".part")
        with half.open("wb") as file:
            np.savez(file, **{"key": np.array(key), **made})  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        half.replace(place)
        return made

    def store(self, name: str, key: str, compute: Callable[[Path], Any]) -> Path:
        """Return the place of a step's Zarr store: found, taken up, or begun.

        Parameters
        ----------
        compute
            Is given the place; taking up what is there half is its own business.
        """
        place, note = self.folder / f"{name}.zarr", self.folder / f"{name}.key"
        if not note.exists() or note.read_text() != key:
            for path in self.folder.glob(f"*{name}.zarr*"):
                shutil.rmtree(path, ignore_errors=True)
            note.write_text(key)
        if not place.exists():
            compute(place)
            self.redone.append(name)
        return place


def _load(place: Path, key: str) -> dict[str, np.ndarray] | None:
    try:
        with np.load(place) as saved:
            if str(saved["key"]) != key:
                return None
            return {name: saved[name] for name in saved.files if name != "key"}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
