"""Read a record: its tables as pandas frames, its facts as plain values."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barrow.errors import InputError
from barrow.recording.schema import TABLES, VERSION

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Record:
    """All that was kept about a run; tables are read when they are asked for.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> run = barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0)))
    >>> record = Record(run.folder / "record.sqlite")
    >>> len(record.table("task")), record.facts["status"]
    (1, 'done')
    """

    path: Path

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What is known of the run as a whole."""
        with closing(self._connect()) as db:
            rows = db.execute("select name, value from run").fetchall()
        return {name: _parse(value) for name, value in rows}

    def table(self, name: str) -> "pandas.DataFrame":
        """Return one table; see :mod:`barrow.recording.schema` for its columns."""
        if name not in TABLES:
            raise InputError(f"A record has no table {name!r}. It has {', '.join(TABLES)}.")
        return self.query(f"select * from {name}")

    def query(self, sql: str) -> "pandas.DataFrame":
        """Return the answer to a question in SQL."""
        import pandas

        with closing(self._connect()) as db:
            return pandas.read_sql_query(sql, db)

    def _connect(self) -> sqlite3.Connection:
        if not self.path.is_file():
            raise InputError(f"There is no record at {self.path}.")
        db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        (found,) = db.execute("select value from run where name = 'schema'").fetchone() or (0,)
        if int(found) != VERSION:
            raise InputError(
                f"{self.path} was written by another version of barrow (its schema is {found}, "
                f"this one reads {VERSION}). Read it with that version."
            )
        return db


def open_record(folder: str | Path) -> Record:
    """Return the record in the folder of a run, or beside a stored result."""
    folder = Path(folder)
    for place in (folder, folder / ".barrow"):
        if (place / "record.sqlite").is_file():
            return Record(place / "record.sqlite")
    raise InputError(f"There is no record in {folder}. Give the folder of a run or of its result.")


def _parse(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
