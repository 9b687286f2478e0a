"""What was done so far, kept beside the place of the output, so that a run can be taken up again.

Each finished chunk is a small file with a checksum. They are pickles: opened only if nobody
but the user can have written them.
"""

import hashlib
import json
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from barrow.errors import OutputError
from barrow.fields.collider.analysis import Span
from barrow.fields.collider.outputs import is_mine
from barrow.fields.collider.tally import Merge, Tally, finish
from barrow.running.disk import write_whole
from barrow.running.folders import open_result_folder, partial_of

DIGEST_BYTES = 16


@dataclass(frozen=True)
class Begun:
    """How the work was cut when it began: it goes on the same way."""

    pieces: Sequence[Sequence[Span]]
    chunk: int
    columns: frozenset[str]


@dataclass(frozen=True)
class Kept:
    """The folder of an unfinished run."""

    folder: Path

    @classmethod
    def beside(cls, to: Path) -> "Kept":
        """Return the folder for what is to become the file ``to``, to be looked at."""
        return cls(partial_of(to.absolute()) / ".barrow")

    @classmethod
    @contextmanager
    def held(cls, to: Path) -> Iterator["Kept"]:
        """Yield the folder for what is to become the file ``to``; nobody else may write there.

        It is removed if nothing was begun in it.
        """
        folder = open_result_folder(to)
        kept = cls(folder.root)
        try:
            yield kept
        finally:
            if kept.is_begun:
                folder.release()
            else:
                folder.remove()

    @property
    def is_begun(self) -> bool:
        """Whether there is something that can be taken up."""
        return self._begun_path.exists()

    @property
    def _begun_path(self) -> Path:
        return self.folder / "begun.json"

    def find(self, start: int, stop: int) -> Tally | None:
        """Return what is kept of some pieces, if it is as it was written."""
        found = _read(self._path(start, stop))
        return found if isinstance(found, Tally) else None

    def store(self, start: int, stop: int, tally: Tally) -> None:
        """Keep what some pieces gave."""
        _write(self._path(start, stop), tally)

    def begin(self, key: str, begun: Begun, known: Mapping[Span, Tally]) -> None:
        """Empty the folder for a run."""
        self.forget()
        _write(self.folder / "known", dict(known))
        content = {
            "key": key,
            "pieces": begun.pieces,
            "chunk": begun.chunk,
            "columns": sorted(begun.columns),
        }
        write_whole(self._begun_path, json.dumps(content))

    def take_up(self, key: str) -> tuple[Begun, dict[Span, Tally]] | None:
        """Return how a run of the same work began; None if there was none."""
        try:
            found = json.loads(self._begun_path.read_text())
            if found["key"] != key or not is_mine(self.folder):
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
        if not self.folder.is_dir() or not is_mine(self.folder):
            return total
        for path in sorted(self.folder.glob("*.part"), key=lambda path: path.name):
            tally = _read(path)
            if isinstance(tally, Tally):
                total = merge(total, tally)
        return finish(total)

    def forget(self) -> None:
        """Remove all that was kept."""
        # Without this the rest is nothing, should it stay behind.
        self._begun_path.unlink(missing_ok=True)
        for path in (self.folder / "known", *self.folder.glob("*.part")):
            path.unlink(missing_ok=True)

    def _path(self, start: int, stop: int) -> Path:
        return self.folder / f"{start:09d}-{stop:09d}.part"


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
