"""Open files of events, and keep those open that are in use.

A file is opened once in each thread of a worker.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from barrow.errors import InputError
from barrow.fields.collider.files import EventFile, FaultError
from barrow.fields.collider.parquet import ParquetFile
from barrow.fields.collider.rootfiles import open_root

MOST_OPEN = 16


def open_file(path: str, tree: str) -> EventFile:
    """Return a file that is open, anew."""
    began = time.perf_counter()
    try:
        is_parquet = path.endswith((".parquet", ".parq"))
        opened = ParquetFile(path, tree) if is_parquet else open_root(path, tree)
    except (InputError, MemoryError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise FaultError(f"{path} cannot be opened: {reason}") from error
    opened.effort.open_seconds += time.perf_counter() - began
    return opened


@contextmanager
def borrowed(path: str, tree: str) -> Iterator[EventFile]:
    """Yield a file that this thread keeps open; one that made trouble is opened anew next time."""
    shelf = _shelf()
    key = path, tree
    opened = shelf.pop(key, None) or open_file(path, tree)
    try:
        yield opened
    except BaseException:
        opened.close()
        raise
    shelf[key] = opened
    while len(shelf) > MOST_OPEN:
        shelf.popitem(last=False)[1].close()


def close_all() -> None:
    """Close what this thread keeps open."""
    shelf = _shelf()
    while shelf:
        shelf.popitem()[1].close()


_LOCAL = threading.local()


def _shelf() -> "OrderedDict[tuple[str, str], EventFile]":
    if not hasattr(_LOCAL, "shelf"):
        _LOCAL.shelf = OrderedDict()
    found: OrderedDict[tuple[str, str], EventFile] = _LOCAL.shelf
    return found
