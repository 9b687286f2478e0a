"""Open a record that may be damaged: nothing of it is believed then, and nothing deleted."""

import sqlite3
from contextlib import suppress
from pathlib import Path

from barrow.errors import OutputError
from barrow.recording.record import BUSY_SECONDS, RecordWriter, primary_code
from barrow.recording.schema import TABLES

_IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# What says something about the file itself; all else may be the disk's fault, and pass.
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


def begin_record(path: Path, *, may_leave_disk: bool = False) -> tuple[RecordWriter, str]:
    """Return the record at a path, and what was wrong with the one that was there, if anything.

    A file that is no sound record is moved aside, never deleted.

    Parameters
    ----------
    may_leave_disk
        Whether to go on in memory if the file cannot be written any more.
    """
    why = _find_fault(path)
    if why:
        kept = _move_aside(path)
        why = f"The record that was there cannot be read ({why}). It is kept as {kept.name}."
    try:
        return RecordWriter(path, may_leave_disk=may_leave_disk), why
    except sqlite3.Error as error:
        if may_leave_disk:
            return RecordWriter(Path(":memory:")), f"No record is kept at {path}: {error}."
        raise _unusable(path, error) from None


def read_fact(path: Path, name: str) -> str | None:
    """Return one of the facts that a record describes; None if it has none or cannot be read."""
    if not path.exists():
        return None
    with suppress(sqlite3.Error):
        db = sqlite3.connect(path, timeout=BUSY_SECONDS)
        try:
            row = db.execute("select value from run where name = ?", (name,)).fetchone()
            return str(row[0]) if row else None
        finally:
            db.close()
    return None


def _find_fault(path: Path) -> str:
    """Return why a file is no sound record; empty if it is one, or is not there."""
    if not path.exists() or not path.stat().st_size:
        return ""
    try:
        db = sqlite3.connect(path, timeout=BUSY_SECONDS)
        try:
            ((verdict,),) = db.execute("pragma quick_check(1)")
            for table in TABLES:
                db.execute(f"select * from {table} limit 1").fetchall()
        finally:
            db.close()
    except sqlite3.Error as error:
        if primary_code(error) in _IN_USE:
            raise OutputError(
                f"Another program is using {path}. Close it there, and start the same call again."
            ) from None
        if primary_code(error) not in _DAMAGED:
            raise _unusable(path, error) from None
        return str(error)
    return "" if verdict == "ok" else str(verdict).splitlines()[-1]


def _unusable(path: Path, error: sqlite3.Error) -> OutputError:
    return OutputError(
        f"The record of the run at {path} cannot be used: {error}. Look whether the disk is full "
        "or write-protected, and start the same call again."
    )


def _move_aside(path: Path) -> Path:
    """Rename a record with all that belongs to it, and return its new path."""
    number = next(n for n in range(1, 10_000) if not path.with_name(f"damaged-{n}.sqlite").exists())
    kept = path.with_name(f"damaged-{number}.sqlite")
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        try:
            part.rename(kept.with_name(kept.name + suffix))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OutputError(f"{part} is damaged and in the way: {error.strerror}.") from None
    return kept
