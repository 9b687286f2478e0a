"""Write the record of a watched program: the one process that touches its file.

Processes of the program send rows through a socket of this user; memory of all of them is
sampled from outside. So the record goes on when any of them is killed, and whatever the
program does with its threads and its memory does not disturb the measurement.

Runs in the process of ``barrow watch``, or as ``python -m barrow.recording.recorder FOLDER
SOCKET PID`` beside a program that watches itself. Only the standard library is needed.
"""

import json
import marshal
import os
import selectors
import shutil
import signal
import socket
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from barrow.recording.processes import follow
from barrow.recording.sampling import Sampler
from barrow.recording.schema import COLUMNS, SCHEMA, VERSION
from barrow.recording.sending import SEND_SECONDS

COMMIT_SECONDS = 0.5
DRAIN_SECONDS = 2.0
"""How long to wait for the last rows of processes that are still connected at the end."""
QUIET_SECONDS, ALONE_SECONDS = 3 * SEND_SECONDS, 0.05
"""Silence after which those that are connected have nothing more to say; and if none is."""
FRESH_SECONDS = 3.0
"""How long what Dask said of a worker's data is taken for true."""
SOCKET_NAME = "recorder"
_RANKS = ("client", "scheduler", "worker", "nanny", "other")
_INSERTS = {
    table: f"insert into {table} values ({', '.join('?' * len(columns))})"
    for table, columns in COLUMNS.items()
    if table in ("dask_task", "event", "sample", "log")
}
_INSERTS["span"] = "insert or replace into span values (?, ?, ?, ?, ?)"


class Recorder:
    """Takes rows from a socket and samples of a tree of processes, and writes them down.

    Parameters
    ----------
    folder
        Holds ``record.sqlite``.
    listener
        A socket that listens; processes of the program connect to it.
    root
        The process whose tree is sampled.
    ignored
        Processes in that tree which belong to the watching.
    """

    def __init__(
        self,
        folder: Path,
        listener: socket.socket,
        root: int,
        ignored: frozenset[int] = frozenset(),
    ) -> None:
        self._db = _open_database(folder / "record.sqlite")
        self._host = socket.gethostname()
        self._tree = follow(root, ignored)
        self._sampler = Sampler(self._tree)
        self._root = root
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._listener = listener
        self._selector.register(listener, selectors.EVENT_READ)
        self._parts: dict[socket.socket, bytearray] = {}
        self._processes: dict[str, dict[str, Any]] = {}
        self._changed: set[str] = set()
        self._levels: dict[str, tuple[float, int | None, int | None]] = {}
        self._restarting: dict[str, str] = {}
        self._committed = time.monotonic()
        self._peak_bytes = 0
        self.is_done = False
        """Whether the program has said that it is over."""
        self.describe({"status": "running", "began": time.time(), "pid": root, "host": self._host})
        self._hello({"pid": root, "kind": "client"})

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Keep facts about the run."""
        rows = [(k, v if isinstance(v, str) else json.dumps(v)) for k, v in facts.items()]
        self._db.executemany("insert or replace into run values (?, ?)", rows)
        self._commit()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Record until the program is over, then take in what is still on its way."""
        while not self.is_done and not is_over():
            self._step()
        self._sampler.tick()
        self._drain()

    def close(self) -> None:
        """Write the rest and close the file."""
        self._keep_samples()
        cpu = time.process_time()
        self.describe({"recorder": {"cpu_seconds": cpu, "tick": self._sampler.tick_seconds}})
        self._commit()
        self._db.execute("pragma wal_checkpoint(truncate)")
        self._db.close()
        for connection in list(self._parts):
            self._hang_up(connection)
        self._selector.close()
        self._listener.close()

    def _step(self) -> None:
        began = time.monotonic()
        self._sampler.tick()
        if self._sampler.is_due():
            self._keep_samples()
        if began - self._committed > COMMIT_SECONDS:
            self._commit()
        deadline = began + self._sampler.tick_seconds
        while (left := deadline - time.monotonic()) > 0:
            if not self._receive(left):
                break

    def _drain(self) -> None:
        deadline = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < deadline:
            # A scheduler that was there before the program outlives it: its last rows come late.
            if not self._receive(QUIET_SECONDS if self._parts else ALONE_SECONDS):
                break
        self._sampler.tick()  # a worker may have been made known just now
        self._keep_samples()

    def _receive(self, seconds: float) -> bool:
        """Take in what comes within some time; return whether anything came."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            if key.fileobj is self._listener:
                with suppress(OSError):
                    connection, _ = self._listener.accept()
                    connection.setblocking(False)
                    self._parts[connection] = bytearray()
                    self._selector.register(connection, selectors.EVENT_READ)
            elif isinstance(key.fileobj, socket.socket):
                self._read(key.fileobj)
        return bool(ready)

    def _read(self, connection: socket.socket) -> None:
        try:
            block = connection.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            block = b""
        part = self._parts[connection]
        part += block
        while len(part) >= 4:
            size = int.from_bytes(part[:4], "little")
            if len(part) < 4 + size:
                break
            message = bytes(part[4 : 4 + size])
            del part[: 4 + size]
            self._take(message)
        if not block:
            self._hang_up(connection)

    def _hang_up(self, connection: socket.socket) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection)
        self._parts.pop(connection, None)
        connection.close()

    def _take(self, message: bytes) -> None:
        try:
            rows = marshal.loads(message)
        except (ValueError, EOFError, TypeError) as error:
            self._note("watching", f"A message could not be read: {error}", {})
            return
        groups: dict[str, list[Any]] = {}
        for name, *values in rows:
            if name in _INSERTS:
                groups.setdefault(name, []).append(values)
            else:
                self._obey(name, values)
        for name, group in groups.items():
            self._insert(name, group)

    def _insert(self, table: str, rows: list[Any]) -> None:
        try:
            self._db.executemany(_INSERTS[table], rows)
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            self._note("watching", f"A row for {table} was refused: {error}", {})

    def _obey(self, name: str, values: list[Any]) -> None:
        if name == "hello":
            self._hello(values[0])
        elif name == "level":
            process, managed, spilled = values
            self._levels[process] = (time.time(), managed, spilled)
        elif name == "fact":
            self.describe({values[0]: values[1]})
        elif name == "left":
            self._note_end(*values)
        elif name == "done":
            self.describe(values[0])
            self.is_done = True

    def _hello(self, facts: Mapping[str, Any]) -> None:
        """Take in what a process says of itself, or Dask of it."""
        name = f"{facts.get('host', self._host)}/{facts['pid']}"
        known = self._processes.setdefault(
            name,
            {
                "kind": "other",
                "host": facts.get("host", self._host),
                "pid": facts["pid"],
                "joined": facts.get("joined", time.time()),
                "addresses": {},
            },
        )
        kind = facts.get("kind", "other")
        if known["host"] == self._host and kind in ("worker", "scheduler"):
            # It may have been there before the program, started by somebody else.
            self._tree.adopt(known["pid"])
        if kind == "worker" and known["kind"] in ("other", "nanny"):
            known["joined"] = time.time()  # until now it was starting
        known["kind"] = min(known["kind"], kind, key=_RANKS.index)
        if "address" in facts:
            # Several workers can live in one process: their threads add up.
            known["addresses"][facts["address"]] = facts.get("threads") or 0
            known["address"] = facts["address"]
            known["threads"] = sum(known["addresses"].values()) or None
        for field in ("label", "limit_bytes"):
            if facts.get(field) is not None:
                known[field] = facts[field]
        self._changed.add(name)

    def _note_end(self, address: str, when: float, reason: str, is_final: bool) -> None:
        """Note why a worker has left; the first reason that is sure stays."""
        for name, known in reversed(self._processes.items()):
            if address in known["addresses"]:
                if not known.get("is_final"):
                    known["reason"], known["is_final"] = reason, is_final
                if known["kind"] == "worker":
                    known.setdefault("left", when)
                if reason != "closed":
                    self._note_crumb(name, known)
                self._changed.add(name)
                return

    def _note_crumb(self, name: str, known: Mapping[str, Any]) -> None:
        """Note what a worker computed when it was lost."""
        path = Path(str(self._listener.getsockname())).parent / f"computing-{known['pid']}"
        try:
            keys = path.read_text(errors="replace").split("\n")
            path.unlink()  # it is told once
        except OSError:
            return
        keys = [key.strip() for key in keys if key.strip()]
        if keys:
            message = f"When {name} ended it was computing {', '.join(keys)}."
            self._note("computing", message, {"process": name, "keys": keys})

    def _keep_samples(self) -> None:
        now = time.time()
        rows = []
        for when, pid, rss, use in self._sampler.take():
            name = f"{self._host}/{pid}"
            if name not in self._processes:
                self._hello({"pid": pid, "joined": self._sampler.seen.get(pid, when)})
            at, managed, spilled = self._levels.get(name, (0.0, None, None))
            if now - at > FRESH_SECONDS:
                managed = spilled = None
            used = (None,) * 3 if use is None else use[:3]
            rows.append((when, name, rss, managed, spilled, *used, None, None))
        self._insert("sample", rows)
        for pid, when in self._sampler.gone.items():
            if known := self._processes.get(f"{self._host}/{pid}"):
                known.setdefault("left", when)
                self._changed.add(f"{self._host}/{pid}")
        self._sampler.gone.clear()
        self._keep_processes()
        if self._sampler.peak_bytes > self._peak_bytes:
            self._peak_bytes = self._sampler.peak_bytes
            self._db.execute(
                "insert or replace into run values ('peak_bytes', ?)", (str(self._peak_bytes),)
            )

    def _keep_processes(self) -> None:
        columns = COLUMNS["process"]
        rows = [
            tuple(name if c == "name" else self._processes[name].get(c) for c in columns)
            for name in self._changed
        ]
        self._changed.clear()
        marks = ", ".join("?" * len(columns))
        try:
            self._db.executemany(f"insert or replace into process values ({marks})", rows)
        except sqlite3.Error as error:
            self._note("watching", f"A row for process was refused: {error}", {})

    def _note(self, kind: str, message: str, details: Mapping[str, Any]) -> None:
        row = (time.time(), kind, message, json.dumps(details))
        self._db.execute(_INSERTS["event"], row)

    def _commit(self) -> None:
        self._db.commit()
        self._committed = time.monotonic()


def open_listener(folder: str) -> socket.socket:
    """Return a socket in a folder that only this user may enter."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(os.path.join(folder, SOCKET_NAME))
    listener.listen(128)
    return listener


def _open_database(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path)
    db.execute("pragma journal_mode=wal")
    db.execute("pragma synchronous=normal")
    db.executescript(SCHEMA)
    db.execute("insert or replace into run values ('schema', ?)", (str(VERSION),))
    db.execute("insert or replace into run values ('kind', 'watch')")
    db.commit()
    return db


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return os.getppid() != pid


def main(arguments: Iterable[str]) -> None:
    """Record for a process that watches itself, until it says so or is gone."""
    folder, place, root = arguments
    # Ctrl-C is for the program; the record ends with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener = open_listener(place)
    recorder = Recorder(Path(folder), listener, int(root), frozenset({os.getpid()}))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    recorder.run(lambda: _is_gone(int(root)))
    recorder.close()
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
