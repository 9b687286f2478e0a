"""Read a record: its tables as pandas frames, its facts as plain values."""

import json
import os
import socket
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
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
        with closing(self.connect()) as db:
            rows = db.execute("select name, value from run").fetchall()
        return {name: _parse(value) for name, value in rows}

    @property
    def status(self) -> str:
        """How the run ended: done, failed, interrupted or killed; or that it is running.

        A run that was killed cannot say so: it says that it is running, and nobody is there.
        """
        said = str(self.facts.get("status", "killed"))
        return "killed" if said == "running" and not _is_alive(self.facts) else said

    @property
    def metrics(self) -> dict[str, Any]:
        """Numbers of the run as a whole, derived from its tables."""
        from barrow.recording.metrics import measure

        return measure(self)

    @property
    def steps(self) -> "pandas.DataFrame":
        """Numbers of each step: a row for each name of Dask's tasks, or each stage of a run."""
        from barrow.recording.metrics import measure_steps

        return measure_steps(self)

    def table(self, name: str) -> "pandas.DataFrame":
        """Return one table; see :mod:`barrow.recording.schema` for its columns."""
        if name not in TABLES:
            raise InputError(f"A record has no table {name!r}. It has {', '.join(TABLES)}.")
        return self.query(f"select * from {name}")

    def columns(self, name: str) -> dict[str, list[Any]]:
        """Return one table as lists, column by column: quicker than a frame to come by."""
        if name not in TABLES:
            raise InputError(f"A record has no table {name!r}. It has {', '.join(TABLES)}.")
        with closing(self.connect()) as db:
            found = db.execute(f"select * from {name}")
            names = [column[0] for column in found.description]
            rows = found.fetchall()
        return (
            dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
            if rows
            else {column: [] for column in names}
        )

    def query(self, sql: str) -> "pandas.DataFrame":
        """Return the answer to a question in SQL."""
        import pandas

        with closing(self.connect()) as db:
            return pandas.read_sql_query(sql, db)

    def connect(self) -> sqlite3.Connection:
        """Return a connection that only reads; whoever asks closes it."""
        if not self.path.is_file():
            raise InputError(f"There is no record at {self.path}.")
        # Where nobody writes any more, nothing is left beside the file, and it may lie where
        # nobody can.
        is_quiet = not self.path.with_name(f"{self.path.name}-wal").exists()
        how = "immutable=1" if is_quiet else "mode=ro"
        db = sqlite3.connect(f"{self.path.absolute().as_uri()}?{how}", uri=True)
        (found,) = db.execute("select value from run where name = 'schema'").fetchone() or (0,)
        if int(found) != VERSION:
            raise InputError(
                f"{self.path} was written by another version of barrow (its schema is {found}, "
                f"this one reads {VERSION}). Read it with that version."
            )
        return db


def open_record(folder: str | PathLike[str]) -> Record:
    """Return the record in the folder of a run, or beside a stored result."""
    folder = Path(folder)
    # A stored result that is not whole yet, or never became so, is made beside its place.
    partial = folder.absolute().with_name(f".{folder.absolute().name}.partial")
    for place in (folder, folder / ".barrow", partial / ".barrow"):
        if (place / "record.sqlite").is_file():
            return Record(place / "record.sqlite")
    # A pipeline that did not come to its last stage: what there is of the one before.
    stages = folder.absolute().with_name(f".{folder.absolute().name}.stages")
    begun = list(stages.glob("*/.barrow/record.sqlite"))
    if begun:
        return Record(max(begun, key=lambda path: path.stat().st_mtime))
    raise InputError(f"There is no record in {folder}. Give the folder of a run or of its result.")


def _is_alive(facts: dict[str, Any]) -> bool:
    """Tell whether the process of a run is there; one of another host is believed to be."""
    if facts.get("host") != socket.gethostname():
        return "host" in facts
    try:
        os.kill(int(facts["pid"]), 0)
    except (ProcessLookupError, KeyError):
        return False
    except PermissionError:
        pass
    return True


def _parse(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
