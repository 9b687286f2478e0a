"""Keep other processes out of a folder, also where there are no locks."""

import errno
import fcntl
import os
import platform
import re
import uuid
from contextlib import suppress
from pathlib import Path
from typing import IO

from barrow.errors import OutputError

# What flock says if somebody else has the lock; all else means that there are no locks here.
_LOCKED = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


def lock_folder(root: Path, place: Path | None) -> IO[str] | None:
    """Return a file that keeps others out until it is closed; None if another process has it.

    Parameters
    ----------
    root
        Folder in which the file is made.
    place
        What is written by whoever has it, for the words of an error.
    """
    lock = open(root / "lock", "w")  # noqa: SIM115 - held until the folder is released
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        if error.errno in _LOCKED:
            return None
        return _own(root / "owner", place)
    return lock


def _own(path: Path, place: Path | None) -> IO[str] | None:
    """Keep others out where there are no locks, as on some network file systems.

    A file says who works here. One whose process is gone does not count.
    """
    made = path.with_name(f".owner-{uuid.uuid4().hex}")
    made.write_text(f"{host_name()} {os.getpid()}")
    try:
        # It has its content when it appears, and only one process can make it appear.
        os.link(made, path)
        return open(path)
    except FileExistsError:
        said = _read_text(path)
    finally:
        made.unlink(missing_ok=True)
    host, _, pid = said.partition(" ")
    if host != host_name():
        raise OutputError(
            f"A process on '{host}' is writing {place}, or was killed while it did. If it "
            f"is gone, delete {path} and start the same call again."
        )
    if is_alive(pid):
        return None
    gone = path.with_name(f".gone-{uuid.uuid4().hex}")
    with suppress(FileNotFoundError):
        path.rename(gone)
        if _read_text(gone) != said:
            gone.rename(path)  # somebody else was quicker
            return None
        gone.unlink()
    return _own(path, place)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def is_at(file: IO[str], path: Path) -> bool:
    """Return whether a file that is open is still the one at its path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def host_name() -> str:
    """Return the name of this machine: a cache folder may be shared by many."""
    return re.sub(r"[^A-Za-z0-9.]", "_", platform.node()) or "machine"


def is_alive(pid: str) -> bool:
    """Return whether a process of this machine is there."""
    if not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
