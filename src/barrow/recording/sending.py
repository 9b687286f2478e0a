"""Send rows to the recorder, from any process of a watched program.

This module is sent by value to workers that run elsewhere: it uses the standard library alone.
"""

import atexit
import logging
import marshal
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

NAME = "barrow-watch"
SEND_SECONDS = 0.1
MOST_WAITING = 50_000
"""Rows that may wait to be sent, about 30 MB; whoever adds more has to wait for the recorder."""
PATIENCE_SECONDS = 10.0
"""How long the recorder may be silent; then nothing more is recorded, and the program goes on."""
MOST_ROWS = 2_000
"""Rows in one message."""
CRUMB_BYTES = 2048
LONGEST_KEY = 300
LONGEST_TEXT = 2_000
MOST_ERRORS = 5


class Sender:
    """Hands rows to the recorder, from any thread; it waits only when far too many wait.

    Parameters
    ----------
    place
        Folder of the recorder's socket.
    emit
        Takes a list of rows instead, where the recorder cannot be reached.
    """

    def __init__(self, place: str, emit: Callable[[list[Any]], None] | None = None) -> None:
        self._place = place
        self._emit = emit
        self._rows: list[Any] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._connection: socket.socket | None = None
        self._pid = os.getpid()
        self._is_closed = False
        self._errors = 0

    def put(self, *row: Any) -> None:
        """Add a row: a table and its values, or a message for the recorder."""
        if self._is_closed:
            return
        if len(self._rows) >= MOST_WAITING:
            self.flush()
        self._rows.append(row)
        if self._thread is None:
            self._start()

    def note_error(self, where: str, error: BaseException) -> None:
        """Note that watching itself went wrong; the first few times only."""
        self._errors += 1
        if self._errors <= MOST_ERRORS:
            message = f"Watching failed in {where}: {type(error).__name__}: {error}"
            self.put("event", time.time(), "watching", clean(message), "{}")

    def flush(self) -> None:
        """Send all that waits, now."""
        with self._lock:
            while self._rows:
                rows, self._rows = self._rows, []
                for start in range(0, len(rows), MOST_ROWS):
                    self._send(rows[start : start + MOST_ROWS])

    def close(self) -> None:
        """Send the rest and let go."""
        if self._is_closed or self._pid != os.getpid():
            return
        self.flush()
        self._is_closed = True
        if self._connection is not None:
            self._connection.close()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=NAME, daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter is ending
                    return
                atexit.register(self.close)

    def _work(self) -> None:
        while not self._is_closed:
            time.sleep(SEND_SECONDS)
            if self._rows:
                self.flush()

    def _send(self, rows: list[Any]) -> None:
        try:
            if self._emit is not None:
                self._emit(rows)
                return
            message = pack(rows)
            if self._connection is None:
                self._connection = connect(self._place)
            self._connection.sendall(len(message).to_bytes(4, "little") + message)
        except Exception:
            # Nobody listens any more: the program is not to notice.
            self._is_closed = True


def connect(place: str) -> socket.socket:
    """Return a connection to the recorder."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE_SECONDS)
    connection.connect(os.path.join(place, "recorder"))
    return connection


def crumb_path(place: str, pid: int) -> str:
    """Return the file in which a worker says what it computes."""
    return os.path.join(place, f"computing-{pid}")


def pack(rows: list[Any]) -> bytes:
    """Return rows as bytes, from which nothing but plain values can come out."""
    try:
        return marshal.dumps(rows, 2)
    except ValueError:
        return marshal.dumps([tuple(plain(value) for value in row) for row in rows], 2)


def plain(value: Any) -> Any:
    if value is None or type(value) in (int, float, str, bool, dict):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except (TypeError, ValueError):
            continue
    return clean(str(value))


def clean(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return a text that can be stored: cut where it is endless, and proper UTF-8."""
    if len(text) > longest:
        text = f"{text[:longest]}… ({len(text)} characters)"
    return text.encode("utf-8", "backslashreplace").decode()


def name_key(key: Any) -> str:
    """Return a task's key as text."""
    return clean(key if isinstance(key, str) else str(key), LONGEST_KEY)


class Layers:
    """The spans in which layers of Dask's collections were made.

    Examples
    --------
    Tasks that were fused bear the names of all their parts, the last one in full: it counts. If
    that was made in no span, the others do if all were made in the same one.

    >>> layers = Layers()
    >>> layers.add({"load-ab12": 7, "clip-cd34": 8})
    >>> layers.find("load-ab12"), layers.find("load-clip-cd34"), layers.find("load-mean-ef56")
    (7, 8, 7)
    >>> layers.find("load-ef56"), layers.find("clip-load-mean-ef56")
    (None, None)
    """

    def __init__(self) -> None:
        self._spans: dict[str, int] = {}
        self._by_prefix: dict[str, set[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._spans)

    def add(self, spans: Mapping[str, int]) -> None:
        """Take in more layers."""
        self._spans.update(spans)
        for name, span in spans.items():
            self._by_prefix.setdefault(name.rpartition("-")[0] or name, set()).add(span)

    def find(self, group: str) -> int | None:
        """Return the span of a group of tasks, by its name."""
        name = group
        while name not in self._spans:
            _, dash, name = name.partition("-")
            if not dash:
                break
        else:
            return self._spans[name]
        parts = f"-{group.rpartition('-')[0]}"
        found: set[int] = set()
        for prefix, spans in self._by_prefix.items():
            if f"-{prefix}-" in parts:
                found |= spans
        return found.pop() if len(found) == 1 else None


class LogHandler(logging.Handler):
    """Sends warnings and errors to the record."""

    def __init__(self, sender: Sender) -> None:
        super().__init__(logging.WARNING)
        self._sender = sender
        self._process = f"{socket.gethostname()}/{os.getpid()}"

    def emit(self, record: logging.LogRecord) -> None:
        """Send one line."""
        try:
            message = record.getMessage()
        except Exception:  # its arguments do not fit: not our affair
            message = str(record.msg)
        self._sender.put(
            "log",
            record.created,
            self._process,
            record.levelname,
            clean(record.name),
            clean(message),
        )
