"""A private folder for what workers spill to disk.

It is removed at the end. If the client was killed and could not do that, the
next one does: a folder whose lock is free belongs to nobody any more.
"""

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "barrow-scratch-"
YOUNG_SECONDS = 60.0
"""A folder as young as this may be about to be locked."""


class Scratch:
    """A fresh folder that only its owner can enter.

    Examples
    --------
    >>> scratch = Scratch.create()
    >>> oct(scratch.path.stat().st_mode)[-3:]
    '700'
    >>> scratch.close()
    >>> scratch.path.exists()
    False
    """

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls) -> "Scratch":
        """Make a folder in the system's place for temporary files."""
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            # Some network file systems have no locks; then nobody tidies up, either.
            pass
        return cls(path, lock)

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_abandoned(parent: Path) -> list[Path]:
    """Remove the folders of clients that were killed, and return them."""
    removed = []
    for path in parent.glob(f"{PREFIX}*"):
        try:
            status = path.lstat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < YOUNG_SECONDS:
                continue
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
        except OSError:
            # Somebody lives there.
            pass
        finally:
            os.close(lock)
    return removed
