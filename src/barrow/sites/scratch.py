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
ELSEWHERE = ("/tmp", "/var/tmp")
"""Where to look if the system's place for temporary files is on the network."""
ON_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "afs",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "glusterfs",
    "9p",
    "fuse.sshfs",
    "pvfs",
    "panfs",
    "orangefs",
)
"""Kinds of file system that are, or how their names begin."""
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
        """Make a folder on a disk of this machine, and tidy up after those who could not."""
        parent = choose_parent()
        remove_abandoned(parent)
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
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


def choose_parent(mounts: str | None = None) -> Path:
    """Return the system's place for temporary files, or another if that is on the network.

    Parameters
    ----------
    mounts
        What ``/proc/self/mounts`` says.
    """
    usual = Path(tempfile.gettempdir())
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text()
        except OSError:
            return usual  # not Linux
    for place in (usual, *map(Path, ELSEWHERE)):
        is_writable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
        if is_writable and not find_file_system(place, mounts).startswith(ON_NETWORK):
            return place
    return usual


def find_file_system(path: Path, mounts: str) -> str:
    """Return the kind of file system that holds a path.

    Examples
    --------
    >>> mounts = "/dev/sda1 / ext4 rw 0 0\\nserver:/home /home nfs4 rw 0 0"
    >>> [find_file_system(Path(p), mounts) for p in ("/home/ada/tmp", "/homes", "/tmp")]
    ['nfs4', 'ext4', 'ext4']
    """
    real = path.resolve()
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(fields[1].replace("\\040", " "))
        # Of two at the same place the later one is seen.
        if real.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind


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
