"""Which runs go on: a small file for each, in the user's cache folder, while it lasts.

So that ``barrow top`` finds the newest one without being told where it is.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from barrow.errors import BarrowError
from barrow.places import cache_folder
from barrow.recording.reading import Record


@contextmanager
def announced(record_path: Path) -> Iterator[None]:
    """Let a run be found while it goes on; nothing fails if that is not possible.

    Examples
    --------
    >>> with announced(Path("/data/run/record.sqlite")):
    ...     Path("/data/run/record.sqlite") in [path for path, _ in _list_announced()]
    True
    """
    note = cache_folder() / "going" / f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        note.write_text(str(record_path.absolute()))
    try:
        yield
    finally:
        with suppress(OSError):
            note.unlink()


def find_newest() -> Record | None:
    """Return the record of the run that was begun last and still goes on; None if there is none.

    Notes of runs that were killed are removed on the way.
    """
    found: list[tuple[float, Record]] = []
    for path, note in _list_announced():
        record = Record(path)
        try:
            is_going = record.status == "running"
            began = float(record.facts.get("began") or 0)
        except (BarrowError, ValueError, OSError):
            is_going, began = False, 0.0
        if is_going:
            found.append((began, record))
        elif not path.exists():
            note.unlink(missing_ok=True)
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _list_announced() -> list[tuple[Path, Path]]:
    """Return the records that were announced, each with its note."""
    found = []
    for note in (cache_folder() / "going").glob("*"):
        with suppress(OSError):
            found.append((Path(note.read_text()), note))
    return found
