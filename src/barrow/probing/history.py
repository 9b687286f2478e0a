"""Remember what was learnt about functions, in one small SQLite file.

A convenience and no more: whatever is wrong with the file, its folder or its
disk, nothing is known then, and nobody is told. Many processes and threads may
use it at once, each operation with a connection of its own.
"""

import json
import math
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from barrow.model.applied import Form
from barrow.model.cost import Cost

FORMAT = 1
"""Version of the file, and of what an entry says."""
MOST_ENTRIES = 4000
"""Beyond this, what was not used for longest is dropped."""
# "brrw": tells the file from those of other programs.
APPLICATION_ID = 0x62727277
# Nobody waits longer than this for others who are writing.
BUSY_SECONDS = 0.1
# The time of the last use is written down only so often.
TOUCH_SECONDS = 3600.0

_SCHEMA = """
create table entry (
    key text primary key,
    content text not null,           -- JSON
    used real not null               -- seconds since the epoch
) without rowid;
create index entry_used on entry (used);
"""

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """What is known about one kind of work: its cost, or the form of its answer."""

    cost: Cost | None = None
    form: Form | None = None
    runs: int = 0
    """How many runs have corrected the cost."""
    work_items: int = 0
    """Of the work for which it was measured: little work is measured less carefully."""
    work_seconds: float = 0.0
    """What that work takes on one core."""
    budget_bytes: int = 0
    """Memory of one task then: if there is plenty, the peak is measured less carefully."""

    def to_json(self) -> str:
        """Return the entry as text.

        Examples
        --------
        >>> entry = Entry(Cost(points=((1000, 0.25),)), runs=3)
        >>> Entry.from_json(entry.to_json()) == entry
        True
        """
        saved = {
            **asdict(self),
            "format": FORMAT,
            "cost": self.cost and self.cost.to_dict(),
            "form": self.form and _form_to_dict(self.form),
        }
        return json.dumps(saved, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Entry":
        """Return the entry that a text says, or raise ValueError if it makes no sense."""
        try:
            saved = json.loads(text)
            if saved.pop("format") != FORMAT:
                raise ValueError("an entry of another version")
            cost, form = saved.pop("cost"), saved.pop("form")
            entry = cls(
                cost=None if cost is None else Cost.from_dict(cost),
                form=None if form is None else _form_from_dict(form),
                **saved,
            )
            is_sound = _is_sound(entry)
        except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"not an entry: {error!r}") from None
        if not is_sound:
            raise ValueError("an entry with impossible values")
        return entry


class History:
    """What is remembered from one run to the next.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> history = History(Path(tempfile.mkdtemp()) / "history.sqlite")
    >>> history.keep("key", Entry(Cost(peak_per_item=16.0)))
    >>> history.find("key").cost.peak_per_item
    16.0
    >>> history.forget("key")
    >>> history.find("key") is None
    True
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def find(self, key: str) -> Entry | None:
        """Return what is known under a key."""
        if not self._path.exists():
            return None
        row = self._attempt(lambda db: _read(db, key))
        if row is None:
            return None
        content, used = row
        try:
            entry = Entry.from_json(content)
        except ValueError:
            return None
        now = self._clock()
        if now - used > TOUCH_SECONDS:
            self._attempt(
                lambda db: db.execute("update entry set used = ? where key = ?", (now, key))
            )
        return entry

    def keep(self, key: str, entry: Entry) -> None:
        """Remember an entry in place of what was known; one that makes no sense is not kept."""
        try:
            content = entry.to_json()
            if Entry.from_json(content) != entry:
                return
        except ValueError:
            return
        self._attempt(lambda db: _write(db, key, content, self._clock()))

    def forget(self, key: str) -> None:
        """Drop what is known under a key."""
        if self._path.exists():
            self._attempt(lambda db: db.execute("delete from entry where key = ?", (key,)))

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do something with the file, or nothing if that cannot be done."""
        for _ in range(2):
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
                with closing(db):
                    return work(db) if _prepare(db) else None
            except sqlite3.DatabaseError as error:
                if not _is_corrupt(error) or not self._remove():
                    return None
            except (sqlite3.Error, OSError):
                return None
        return None

    def _remove(self) -> bool:
        try:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        except OSError:
            return False
        return True


def _read(db: sqlite3.Connection, key: str) -> tuple[str, float] | None:
    found: tuple[str, float] | None = db.execute(
        "select content, used from entry where key = ?", (key,)
    ).fetchone()
    return found


def _write(db: sqlite3.Connection, key: str, content: str, now: float) -> None:
    db.execute("begin immediate")
    db.execute("insert or replace into entry values (?, ?, ?)", (key, content, now))
    db.execute(
        "delete from entry where key in "
        "(select key from entry order by used desc limit -1 offset ?)",
        (MOST_ENTRIES,),
    )
    db.execute("commit")


def _prepare(db: sqlite3.Connection) -> bool:
    """Return whether the file is ours, after making it so if it is new."""
    # What a power cut may spoil is replaced: waiting for the disk is not worth it.
    db.execute("pragma synchronous=off")
    if _stamp(db) == (0, 0):
        db.execute("pragma journal_mode=wal")
        db.execute("begin immediate")
        if _stamp(db) == (0, 0) and not db.execute("select 1 from sqlite_master").fetchone():
            for statement in _SCHEMA.strip().rstrip(";").split(";\n"):
                db.execute(statement)
            db.execute(f"pragma application_id={APPLICATION_ID}")
            db.execute(f"pragma user_version={FORMAT}")
        db.execute("commit")
    return _stamp(db) == (APPLICATION_ID, FORMAT)


def _stamp(db: sqlite3.Connection) -> tuple[int, int]:
    return (
        db.execute("pragma application_id").fetchone()[0],
        db.execute("pragma user_version").fetchone()[0],
    )


def _is_corrupt(error: sqlite3.Error) -> bool:
    # The low byte is the kind of error; the rest says more about it.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _is_sound(entry: Entry) -> bool:
    numbers: list[Any] = [
        entry.runs,
        entry.work_items,
        entry.work_seconds,
        entry.budget_bytes,
    ]
    cost, form = entry.cost, entry.form
    if cost is not None:
        curves = (
            cost.points,
            cost.thread_slowdown,
            cost.process_slowdown,
            cost.core_slowdown,
        )
        numbers += [value for value in cost.to_dict().values() if not isinstance(value, tuple)]
        for curve in curves:
            sizes = [items for items, _ in curve]
            if sizes != sorted(set(sizes)) or not all(i > 0 and v > 0 for i, v in curve):
                return False
            numbers += [value for _, value in curve]
    if form is not None:
        numbers += form.lengths.values()
        if not form.kept <= set(form.lengths):
            return False
    return all(math.isfinite(number) and number >= 0 for number in numbers)


def _form_to_dict(form: Form) -> dict[str, Any]:
    return {
        "lengths": list(form.lengths.items()),
        # Fields of a record, for one, are not in this text: then the entry is not kept.
        "dtype": form.dtype.str,
        "kept": sorted(form.kept),
        "whole": sorted(form.whole),
    }


def _form_from_dict(saved: Mapping[str, Any]) -> Form:
    return Form(
        lengths={str(dim): int(length) for dim, length in saved["lengths"]},
        dtype=np.dtype(saved["dtype"]),
        kept=frozenset(saved["kept"]),
        whole=frozenset(saved["whole"]),
    )
