"""What a file system has left, and whether what was written to it is safe.

Facts only: what to do about them is decided elsewhere.
"""

import ctypes
import errno
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from barrow.errors import OutputError

# What passes when somebody frees space, or when a server is back.
FULL = {errno.ENOSPC, errno.EDQUOT}
PASSING = {*FULL, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}


@dataclass(frozen=True)
class Room:
    """What a file system has left for this user."""

    free_bytes: int
    total_bytes: int
    path: Path
    """A folder on it."""


def measure_room(path: Path) -> Room | None:
    """Return the room where a path is or will be; None if the file system does not say.

    Examples
    --------
    >>> room = measure_room(Path("/tmp/not/there/yet"))
    >>> room is None or room.path == Path("/tmp")
    True
    """
    parent = next((p for p in (path, *path.parents) if p.exists()), None)
    if parent is None:
        return None
    try:
        said = os.statvfs(parent)
    except OSError:
        return None
    if not said.f_blocks:
        return None
    # The last few percent are often kept for the administrator.
    free = said.f_bfree if os.geteuid() == 0 else said.f_bavail
    return Room(free * said.f_frsize, said.f_blocks * said.f_frsize, parent)


def is_writable(folder: Path, size: int) -> bool:
    """Return whether a file of so many bytes can be written now; nothing stays of it.

    More than the free space counts: quotas, the number of files, protection.
    """
    path = folder / f".probe-{uuid.uuid4().hex}"
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError:
        return False
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, max(1, size))
        else:
            os.write(file, bytes(min(size, 2**20)))
        os.fsync(file)
    except OSError as error:
        return error.errno in (errno.EINVAL, errno.EOPNOTSUPP)  # cannot be tried here
    finally:
        os.close(file)
        with suppress(OSError):
            path.unlink()
    return True


def make_safe(folder: Path) -> None:
    """Wait until all that was written below a folder will outlast a loss of power.

    One call for the whole file system: a call for each file takes two to seven times
    as long as writing it.
    """
    file = os.open(folder, os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "syncfs"):
            os.sync()
        elif libc.syncfs(file):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(folder))
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    """Wait, where that is possible, until the names in a folder will outlast a loss of power."""
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def write_whole(path: Path, text: str) -> None:
    """Write a small file so that the old one stays if there is no room for the new one."""
    made = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    try:
        made.write_text(text)
        made.replace(path)
    except OSError as error:
        with suppress(OSError):
            made.unlink()
        raise OutputError(f"{path} cannot be written: {error.strerror}.") from error
