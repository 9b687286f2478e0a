"""Send rows to the recorder, from any process of a watched program.

This module is sent by value to workers that run elsewhere: it uses the standard library alone.
"""

import atexit
import functools
import logging
import marshal
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

NAME = "barrow-watch"
SEND_SECONDS = 0.1
MOST_WAITING = 50_000
"""Rows that may wait to be sent, about 30 MB; whoever adds more has to wait for the recorder."""
PATIENCE_SECONDS = 10.0
"""How long the recorder may be silent; then nothing more is recorded, and the program goes on."""
MOST_ROWS = 2_000
"""Rows in one message."""
PAGE_FILE = "page.json"
"""Beside the socket: the command that makes the live page."""
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


def guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of a watcher harmless: its errors are noted."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            sender = getattr(self, "sender", None)
            if sender is not None:
                sender.note_error(method.__name__, error)
            return None

    return call


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
