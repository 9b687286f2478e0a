"""What was done so far, kept beside the place of the output, so that a run can be taken up again.

Each finished chunk is a small file with a checksum. They are pickles: opened only if nobody
but the user can have written them.
"""

import hashlib
import json
import os
import pickle
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from barrow.errors import OutputError
from barrow.fields.collider.analysis import Span
from barrow.fields.collider.tally import Merge, Tally, finish
from barrow.running.disk import write_whole

DIGEST_BYTES = 16


@dataclass(frozen=True)
class Begun:
    """How the work was cut when it began: it goes on the same way."""

    pieces: list[list[Span]]
    chunk: int
    columns: frozenset[str]


@dataclass(frozen=True)
class Kept:
    """The folder of an unfinished run."""

    folder: Path

    @classmethod
    def beside(cls, to: Path) -> "Kept":
        """Return the folder for what is to become the file ``to``."""
        return cls(to.parent / f".{to.name}.partial")

    def find(self, start: int, stop: int) -> Tally | None:
        """Return what is kept of some pieces, if it is as it was written."""
        found = _read(self._path(start, stop))
        return found if isinstance(found, Tally) else None

    def store(self, start: int, stop: int, tally: Tally) -> None:
        """Keep what some pieces gave."""
        _write(self._path(start, stop), tally)

    def begin(self, key: str, begun: Begun, known: Mapping[Span, Tally]) -> None:
        """Make the folder anew for a run."""
        self.remove()
        try:
            self.folder.mkdir(mode=0o700)
        except OSError as error:
            raise OutputError(f"{self.folder} cannot be made: {error.strerror}.") from None
        _write(self.folder / "known", dict(known))
        content = {
            "key": key,
            "pieces": begun.pieces,
            "chunk": begun.chunk,
            "columns": sorted(begun.columns),
        }
        write_whole(self.folder / "begun.json", json.dumps(content))

    def take_up(self, key: str) -> tuple[Begun, dict[Span, Tally]] | None:
        """Return how a run of the same work began; None if there was none."""
        try:
            found = json.loads((self.folder / "begun.json").read_text())
            if found["key"] != key or not _is_mine(self.folder):
                return None
            pieces = [[Span(*span) for span in piece] for piece in found["pieces"]]
            begun = Begun(pieces, found["chunk"], frozenset(found["columns"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        known = _read(self.folder / "known")
        return (begun, known) if isinstance(known, dict) else None

    def total(self, merge: Merge) -> Tally:
        """Return the sum of all that is kept, in its order."""
        total = Tally()
        if not self.folder.is_dir() or not _is_mine(self.folder):
            return total
        for path in sorted(self.folder.glob("*.part"), key=lambda path: path.name):
            tally = _read(path)
            if isinstance(tally, Tally):
                total = merge(total, tally)
        return finish(total)

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.folder)

    def _path(self, start: int, stop: int) -> Path:
        return self.folder / f"{start:09d}-{stop:09d}.part"


def save_output(path: Path, output: Any, about: Mapping[str, Any]) -> None:
    """Write the output, and what is known about it beside it."""
    write_whole(_about_path(path), json.dumps(about, default=str, indent=2) + "\n")
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_bytes(cloudpickle.dumps(output))
        beside.replace(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}.") from None


def read_about(path: Path) -> dict[str, Any]:
    """Return what is known about an output that was written earlier."""
    try:
        found: dict[str, Any] = json.loads(_about_path(path).read_text())
        return found if path.exists() else {}
    except (OSError, ValueError):
        return {}


def load_output(path: Path) -> Any:
    """Return an output that was written earlier."""
    if not _is_mine(path):
        raise OutputError(f"{path} belongs to somebody else, or others may write it: not opened.")
    return pickle.loads(path.read_bytes())


def list_parts(kept: Kept) -> Sequence[Path]:
    """Return the files of finished chunks."""
    return sorted(kept.folder.glob("*.part"))


def _about_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _write(path: Path, content: Any) -> None:
    data = cloudpickle.dumps(content)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            file.write(hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest() + data)
        beside.replace(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}.") from None


def _read(path: Path) -> Any:
    """Return what was written; None if it is not there, or not whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, data = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest() != digest:
        return None
    return pickle.loads(data)


def _is_mine(path: Path) -> bool:
    status = path.stat()
    is_open = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.geteuid() and not is_open
