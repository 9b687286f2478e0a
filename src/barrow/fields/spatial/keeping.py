"""A segmentation at a place of its own: finished it is read again, interrupted it is taken up.

Beside the scales of the labels lie two hidden things: the table, with the key of what was asked
for, written when all else is whole; and until then a folder with the labels of the tiles.
"""

import json
import operator
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from barrow.composing import fuse
from barrow.errors import OutputError
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.running.fingerprint import fingerprint

TABLE = ".table.npz"
TILES = ".tiles"


@dataclass(frozen=True)
class Kept:
    """Where a segmentation goes to, and what tells it from others."""

    path: Path
    key: str | None
    """None if the data cannot be told from others: then nothing is taken up again."""

    @classmethod
    def at(cls, to: Any, source: Source, asked: Mapping[str, Any]) -> "Kept | None":
        """Return the place for a segmentation of a source; None if it has none.

        Parameters
        ----------
        asked
            All that the labels depend on, as the user said it.
        """
        if to is None:
            return None
        step = Step(operator.add, kwargs=dict(asked), combine=operator.add)
        return cls(Path(to), fingerprint(fuse(step, [source])))

    def read_table(self) -> pandas.DataFrame | None:
        """Return the table of a finished segmentation; None if there is none yet."""
        try:
            with np.load(self.path / TABLE) as found:
                key, rows = str(found["key"]), found["table"]
        except (OSError, KeyError, ValueError, zipfile.BadZipFile):
            return None
        if key != self.key:
            raise OutputError(
                f"{self.path} holds another segmentation: it was made by another model, with other "
                "arguments or from other data. Choose another place, or move it away."
            )
        return pandas.DataFrame.from_records(rows)

    def write_table(self, table: pandas.DataFrame) -> None:
        """Keep the table: the segmentation is finished."""
        half = self.path / f"{TABLE}.partial"
        with half.open("wb") as file:
            np.savez(file, key=np.array(self.key or ""), table=table.to_records(index=False))
            file.flush()
            os.fsync(file.fileno())
        half.replace(self.path / TABLE)


class Scratch:
    """A folder for labels of tiles until they are joined."""

    def __init__(self, kept: Kept | None) -> None:
        self._kept = kept
        self._path: Path | None = None

    @property
    def is_lasting(self) -> bool:
        """Whether what lies here outlives an interruption."""
        return self._kept is not None and self._kept.key is not None

    @property
    def path(self) -> Path:
        """The folder; it is made when it is first asked for."""
        if self._path is None:
            if self._kept is None or self._kept.key is None:
                self._path = Path(tempfile.mkdtemp(prefix="barrow-tiles-"))
            else:
                self._path = self._kept.path / TILES / self._kept.key
                self._path.mkdir(parents=True, exist_ok=True)
        return self._path

    def read_cut(self) -> dict[str, int]:
        """Return the size of the tiles that were begun here; empty if none were."""
        if not self.is_lasting:
            return {}
        try:
            return {str(dim): int(n) for dim, n in json.loads(self._cut.read_text()).items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}

    def write_cut(self, chunks: Mapping[str, int]) -> None:
        """Remember the size of the tiles: those that are done fit no other one."""
        if self.is_lasting:
            self._cut.write_text(json.dumps(dict(chunks)))

    def remove(self) -> None:
        """Remove the folder, and what calls that were never finished have left beside it."""
        if self._path is not None:
            place = self._path.parent if self.is_lasting else self._path
            shutil.rmtree(place, ignore_errors=True)

    @property
    def _cut(self) -> Path:
        return self.path / "cut.json"


@contextmanager
def scratch_for(kept: Kept | None) -> Iterator[Scratch]:
    """Yield a folder that is removed at the end; one that lasts is left if the end is an error."""
    scratch = Scratch(kept)
    try:
        yield scratch
    except BaseException:
        if not scratch.is_lasting:
            scratch.remove()
        raise
    scratch.remove()
