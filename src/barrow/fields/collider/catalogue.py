"""How many events each file has and where it can be cut: looked up once, then remembered."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from barrow.fields.collider.files import FaultError
from barrow.fields.collider.filesets import Entry
from barrow.fields.collider.opening import borrowed
from barrow.places import cache_folder
from barrow.sources.identity import identify_file

# Files elsewhere answer late, so many are asked at once; here one thread is as fast.
REMOTE_THREADS = 16
# Seconds to wait before a file is tried again.
PAUSES = (0.1, 0.4)
# Of what is remembered.
FORMAT = 1


@dataclass(frozen=True)
class Listed:
    """A file of which is known what it holds."""

    entry: Entry
    entries: int
    edges: tuple[int, ...]
    """Where its storage can be cut: 0, each further cluster, the end."""
    uuid: str = ""


@dataclass(frozen=True)
class Unlisted:
    """A file that could not be opened."""

    entry: Entry
    error: Exception
    attempts: int


def list_contents(files: Sequence[Entry], *, remembers: bool = True) -> list[Listed | Unlisted]:
    """Return what each file holds, in the same order."""
    with closing(_Memory(remembers)) as memory:
        known = [memory.recall(entry) for entry in files]
        missing = [entry for entry, found in zip(files, known, strict=True) if found is None]
        looked = iter(list(_look_at_all(missing)))
        found = [listed if listed is not None else next(looked) for listed in known]
        memory.keep(item for item in found if isinstance(item, Listed))
    return found


def retry(act: Callable[[], Listed], entry: Entry) -> Listed | Unlisted:
    """Do something with a file, several times if it fails."""
    for attempt, pause in enumerate((*PAUSES, None), start=1):
        try:
            return act()
        except FaultError as error:
            if pause is None:
                return Unlisted(entry, error, attempt)
            time.sleep(pause)
    raise AssertionError("the last attempt returns")


def _look_at_all(files: Sequence[Entry]) -> Iterator[Listed | Unlisted]:
    remote = [entry for entry in files if "://" in entry.path]
    if not remote:
        yield from map(_look_at, files)
        return
    with ThreadPoolExecutor(REMOTE_THREADS) as pool:
        yield from pool.map(_look_at, files)


def _look_at(entry: Entry) -> Listed | Unlisted:
    def look() -> Listed:
        with borrowed(entry.place, entry.tree) as file:
            return Listed(entry, file.entries, tuple(map(int, file.edges)), file.uuid)

    return retry(look, entry)


class _Memory:
    """A small table in the user's cache; a file that has changed is not found in it."""

    def __init__(self, remembers: bool) -> None:
        self._table: sqlite3.Connection | None = None
        self._known: set[str] = set()
        if not remembers:
            return
        with suppress(OSError, sqlite3.Error):
            path = cache_folder() / "collider" / "files.sqlite"
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._table = sqlite3.connect(path, timeout=5)
            self._table.execute(
                f"CREATE TABLE IF NOT EXISTS files_{FORMAT} (key TEXT PRIMARY KEY, content TEXT)"
            )

    def recall(self, entry: Entry) -> Listed | None:
        key = _key_of(entry)
        if self._table is None or key is None:
            return None
        with suppress(sqlite3.Error, ValueError, KeyError, TypeError):
            found = self._table.execute(
                f"SELECT content FROM files_{FORMAT} WHERE key = ?", (key,)
            ).fetchone()
            if found is not None:
                kept = json.loads(found[0])
                self._known.add(key)
                return Listed(entry, kept["entries"], tuple(kept["edges"]), kept["uuid"])
        return None

    def keep(self, listed: Iterable[Listed]) -> None:
        if self._table is None:
            return
        rows = []
        for item in listed:
            key = _key_of(item.entry)
            if key is not None and key not in self._known:
                content = {"entries": item.entries, "edges": item.edges, "uuid": item.uuid}
                rows.append((key, json.dumps(content)))
        with suppress(sqlite3.Error), self._table:
            self._table.executemany(f"INSERT OR REPLACE INTO files_{FORMAT} VALUES (?, ?)", rows)

    def close(self) -> None:
        if self._table is not None:
            self._table.close()


def _key_of(entry: Entry) -> str | None:
    """Return what tells a local file from what it may become later; None for others."""
    identity = None if "://" in entry.path else identify_file(entry.place)
    return None if identity is None else f"{identity}|{entry.tree}"
