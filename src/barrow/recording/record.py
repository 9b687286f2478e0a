"""The record of a run: an SQLite file, written as it happens.

Readable at any moment by anybody, also after a crash: entries are committed as they
come, and at least twice a second where that would take too long. The table ``task``
is the ledger too: a chunk is noted only after its bytes are in the store. Entries
that the disk does not take wait in memory.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from barrow.errors import OutputError
from barrow.model.skipped import Skipped
from barrow.recording.schema import COLUMNS, SCHEMA, TABLES, VERSION

Rows = Sequence[tuple[Any, ...] | dict[str, Any]]
"""Values by their order, or by the names that stand in the statement."""
COMMIT_SECONDS = 0.5
COMMIT_SHARE = 0.01
"""Of the time of a run, what committing each report may take; then some are put together."""
# How long to wait for somebody else who is writing to the file.
BUSY_SECONDS = 2.0
# Of these it may recover: the disk is full (a quota says "I/O error"), or others use the file.
_PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NOTE_CHUNK = f"insert or replace into task values ({', '.join('?' * 13)})"
_NOTE_SKIPPED = "insert or replace into skipped values (?, ?, ?, ?, ?)"


class RecordWriter:
    """Writes the record of one run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> with RecordWriter(folder / "record.sqlite") as record:
    ...     record.describe({"step": "denoise"})
    ...     done = (4, 0.0, 0.1, 0.2, 0.1, 0.3, 800, 800, 2, (7, 9), 0)
    ...     record.note_chunks("17/main", 2**20, [done])
    ...     record.finished_chunks()
    {4, 5}
    """

    def __init__(self, path: Path, *, may_leave_disk: bool = False) -> None:
        self.path = path
        self._may_leave_disk = may_leave_disk
        self._lock = threading.RLock()
        self._waiting: list[tuple[str, Rows]] = []
        self.trouble = ""
        """Why the last entries are not in the file yet; empty when they are."""
        # Reports may come from another thread than the one that opened the file.
        self._db = sqlite3.connect(path, check_same_thread=False, timeout=BUSY_SECONDS)
        try:
            self._prepare()
        except sqlite3.Error:
            self._db.close()
            raise
        self._opened = self._committed = time.monotonic()
        self._committing_seconds = 0.0

    def _prepare(self) -> None:
        self._db.execute("pragma journal_mode=wal")
        self._db.execute("pragma synchronous=normal")
        if self._schema() != VERSION:
            # What another version has begun cannot be taken up: it is done again.
            for table in TABLES:
                self._db.execute(f"drop table if exists {table}")
        self._db.executescript(SCHEMA)
        rows = [("schema", str(VERSION))]
        with self._db:
            self._db.executemany("insert or replace into run values (?, ?)", rows)

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Keep facts about the run; texts as they are, all else as JSON."""
        rows = [
            (name, value if isinstance(value, str) else json.dumps(value))
            for name, value in facts.items()
        ]
        self._add("insert or replace into run values (?, ?)", rows)
        self.flush()

    def note_chunks(self, worker: str, resident_bytes: int, chunks: Iterable[Any]) -> None:
        """Note chunks whose results are safe: tuples in the order of the table.

        A tuple that stands for several chunks becomes a row for each of them.
        """
        rows = [(*row, worker, resident_bytes) for chunk in chunks for row in _share_out(*chunk)]
        self._add(_NOTE_CHUNK, rows)
        now = time.monotonic()
        is_cheap = self._committing_seconds <= COMMIT_SHARE * (now - self._opened)
        if is_cheap or now - self._committed > COMMIT_SECONDS:
            self.flush()
            self._committing_seconds += time.monotonic() - now

    def note_event(self, kind: str, message: str, details: Mapping[str, Any]) -> None:
        """Note that something happened to the run as a whole."""
        row = (time.time(), kind, message, json.dumps(details))
        self._add("insert into event values (?, ?, ?, ?)", [row])
        self.flush()

    def flush(self) -> bool:
        """Write what waits; False if that is not possible now: see ``trouble``.

        Nothing is lost then: it is tried again with the next entries. Raises an
        :class:`~barrow.errors.OutputError` if it will never be possible.
        """
        with self._lock:
            return self._flush()

    def _add(self, sql: str, rows: Rows) -> None:
        """Let rows wait until the next flush; also from another thread."""
        with self._lock:
            self._waiting.append((sql, rows))

    def _flush(self) -> bool:
        try:
            self._write()
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.rollback()
            if self._may_leave_disk:
                self._leave_disk()
                return self._flush()
            if primary_code(error) not in _PASSING:
                raise OutputError(
                    f"The record of the run cannot be written any more: {error} ({self.path})."
                ) from None
            is_full = primary_code(error) == sqlite3.SQLITE_FULL
            self.trouble = "the disk is full" if is_full else str(error)
            return False
        finally:
            self._committed = time.monotonic()
        self.trouble = ""
        return True

    def _write(self) -> None:
        # Either all or nothing: SQLite may undo the whole of what was not committed.
        for sql, rows in self._waiting:
            self._db.executemany(sql, rows)
        self._db.commit()
        self._waiting.clear()

    def _leave_disk(self) -> None:
        """Go on in memory: the result is there too, and worth more than its record."""
        spare = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._db.backup(spare)
        except sqlite3.Error:
            spare.close()
            spare = sqlite3.connect(":memory:", check_same_thread=False)
        spare.executescript(SCHEMA)
        with suppress(sqlite3.Error):
            self._db.close()
        self._db, self._may_leave_disk = spare, False

    def note_skipped(self, skipped: Skipped) -> None:
        """Note a chunk that has no answer."""
        place = json.dumps(skipped.ranges)
        row = (skipped.step, skipped.chunk, place, skipped.reason, skipped.attempts)
        self._add(_NOTE_SKIPPED, [row])
        self.flush()

    def forget_skipped(self) -> None:
        """Let chunks that were skipped be tried again."""
        self._add("delete from skipped where ?", [(True,)])
        self.flush()

    def note_rows(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Note rows of a table that is only added to: tuples in the order of its columns."""
        marks = ", ".join("?" * len(COLUMNS[table]))
        self._add(f"insert or ignore into {table} values ({marks})", list(rows))

    def note_processes(self, processes: Iterable[tuple[Any, ...]], own: int) -> None:
        """Note processes as name, host, number, when they came and when they went.

        Those that have done chunks are workers.
        """
        self._add(
            "insert or replace into process (name, kind, host, pid, joined, left) "
            "values (:name, case when :pid = :own then 'client' when exists (select 1 from task "
            "where worker >= :pid || '/' and worker < :pid || '0') then 'worker' else 'other' end, "
            ":host, :pid, :joined, :left)",
            [
                dict(zip(("name", "host", "pid", "joined", "left"), process, strict=True), own=own)
                for process in processes
            ],
        )

    def account(self, slots: int, began: float, ended: float) -> dict[str, float]:
        """Return what the time of all slots was spent on besides chunks.

        With the seconds of reading, computing and writing it adds up to slots × wall. Idle is
        what a slot had left when its last chunk was done and others still worked; starting is
        before the first chunk and after the last one; overhead is between chunks.
        """
        self.flush()
        rows = self._db.execute(
            "select min(started), max(started + cells * (read_seconds + compute_seconds + "
            "write_seconds)), sum(read_seconds + compute_seconds + write_seconds) from task "
            "where started >= ? group by worker",
            (began,),
        ).fetchall()
        held = slots * (ended - began)
        first = min((row[0] for row in rows), default=ended)
        last = max((row[1] for row in rows), default=ended)
        busy = sum(row[2] for row in rows)
        starting = slots * (max(0.0, first - began) + max(0.0, ended - last))
        ends = sorted((row[1] for row in rows), reverse=True)[:slots]
        idle = sum(last - end for end in ends) + (slots - len(ends)) * max(0.0, last - first)
        return {
            "held_seconds": held,
            "starting_seconds": starting,
            "idle_seconds": idle,
            "overhead_seconds": max(0.0, held - busy - starting - idle),
        }

    def finished_chunks(self) -> set[int]:
        """Return the numbers of the chunks that are done."""
        self.flush()
        return {number for (number,) in self._db.execute("select chunk from task")}

    def checksums(self) -> dict[int, int | None]:
        """Return the checksum of each chunk that is done."""
        self.flush()
        return dict(self._db.execute("select chunk, checksum from task order by chunk"))

    def forget_chunks(self, numbers: Iterable[int]) -> None:
        """Take out chunks that have to be done again."""
        self._add("delete from task where chunk = ?", [(n,) for n in numbers])
        self.flush()

    def totals(self) -> dict[str, float]:
        """Return sums over all chunks."""
        self.flush()
        names = "read_seconds compute_seconds write_seconds cpu_seconds read_bytes written_bytes"
        sums = ", ".join(f"coalesce(sum({name}), 0)" for name in names.split())
        row = self._db.execute(
            f"select count(*), {sums}, coalesce(max(resident_bytes), 0), "
            "coalesce(max(peak_bytes), 0) from task"
        ).fetchone()
        most = ["peak_resident_bytes", "peak_task_bytes"]
        return dict(zip(["chunks", *names.split(), *most], row, strict=True))

    def _schema(self) -> int | None:
        """Return the version that wrote what is in the file; None if it is new."""
        try:
            rows = self._db.execute("select value from run where name = 'schema'").fetchall()
        except sqlite3.OperationalError:
            return None
        return int(rows[0][0]) if rows and rows[0][0].isdecimal() else None

    def close(self) -> None:
        """Write the rest, as far as that is possible, and close the file."""
        with suppress(sqlite3.Error, OutputError):
            self.flush()
        with suppress(sqlite3.Error):
            self._db.close()

    def __enter__(self) -> "RecordWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_skipped(path: Path) -> tuple[Skipped, ...]:
    """Return the chunks without an answer from the record of a run that has ended."""
    # Nobody writes it any more, and it may lie where nobody can.
    db = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)
    try:
        rows = db.execute("select step, chunk, ranges, reason, attempts from skipped").fetchall()
    finally:
        db.close()
    return tuple(
        Skipped(step, chunk, tuple((a, b) for a, b in json.loads(ranges)), reason, attempts)
        for step, chunk, ranges, reason, attempts in rows
    )


def _share_out(number: int, started: float, *measured: Any) -> Iterable[tuple[Any, ...]]:
    """Yield a row for each of the chunks that one call has done."""
    *seconds, read_bytes, written_bytes, cells, checksums, peak_bytes = measured
    if cells == 1:
        yield number, started, *measured[:-2], checksums[0], peak_bytes
        return
    shares = [spent / cells for spent in seconds]
    for index in range(cells):
        # What cannot be divided goes to the first ones: sums stay exact.
        sizes = [size // cells + (index < size % cells) for size in (read_bytes, written_bytes)]
        yield number + index, started, *shares, *sizes, cells, checksums[index], peak_bytes


def primary_code(error: sqlite3.Error) -> int:
    """Return what kind of error it is; the bits above say where it happened."""
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF
