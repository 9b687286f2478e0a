"""The record of a run: an SQLite file, written as it happens.

Readable at any moment by anybody, also after a crash: entries are committed
twice a second. The table ``task`` is the ledger too: a chunk is noted only after
its bytes are in the store.
"""

import json
import platform
import sqlite3
import sys
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1
COMMIT_SECONDS = 0.5

_SCHEMA = """
create table if not exists run (name text primary key, value text) without rowid;
create table if not exists task (
    chunk integer primary key,       -- number in the plan's grid
    worker text not null,            -- process/thread
    started real not null,           -- seconds since the epoch
    read_seconds real not null,
    compute_seconds real not null,
    write_seconds real not null,
    cpu_seconds real not null,
    read_bytes integer not null,
    written_bytes integer not null,
    resident_bytes integer not null  -- of the process, just after
);
"""


class RecordWriter:
    """Writes the record of one run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> with RecordWriter(folder / "record.sqlite") as record:
    ...     record.describe({"step": "denoise"})
    ...     record.note_chunks("17/main", 2**20, [(4, 0.0, 0.1, 0.2, 0.1, 0.3, 800, 800)])
    ...     record.finished_chunks()
    {4}
    """

    def __init__(self, path: Path) -> None:
        # Reports may come from another thread than the one that opened the file.
        self._db = sqlite3.connect(path, check_same_thread=False)
        self._db.execute("pragma journal_mode=wal")
        self._db.execute("pragma synchronous=normal")
        self._db.executescript(_SCHEMA)
        self._committed = time.monotonic()
        self.describe({"schema": SCHEMA_VERSION})

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Keep facts about the run; texts as they are, all else as JSON."""
        rows = [
            (name, value if isinstance(value, str) else json.dumps(value))
            for name, value in facts.items()
        ]
        self._db.executemany("insert or replace into run values (?, ?)", rows)
        self._db.commit()

    def note_chunks(self, worker: str, resident_bytes: int, chunks: Iterable[Any]) -> None:
        """Note chunks whose results are safe: tuples of number, start and measurements."""
        self._db.executemany(
            "insert or replace into task values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(c[0], worker, *c[1:], resident_bytes) for c in chunks],
        )
        if time.monotonic() - self._committed > COMMIT_SECONDS:
            self._db.commit()
            self._committed = time.monotonic()

    def finished_chunks(self) -> set[int]:
        """Return the numbers of the chunks that are done."""
        return {number for (number,) in self._db.execute("select chunk from task")}

    def totals(self) -> dict[str, float]:
        """Return sums over all chunks."""
        names = "read_seconds compute_seconds write_seconds cpu_seconds read_bytes written_bytes"
        sums = ", ".join(f"coalesce(sum({name}), 0)" for name in names.split())
        row = self._db.execute(
            f"select count(*), {sums}, coalesce(max(resident_bytes), 0) from task"
        ).fetchone()
        return dict(zip(["chunks", *names.split(), "peak_resident_bytes"], row, strict=True))

    def close(self) -> None:
        """Write the rest and close the file."""
        self._db.commit()
        self._db.close()

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def describe_environment() -> dict[str, Any]:
    """Return the versions of all that a result may depend on."""
    versions = {}
    for package in ("barrow", "numpy", "scipy", "dask", "distributed", "zarr", "xarray", "numba"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "versions": versions,
    }
