"""Tell other processes of the same user how to reach a cluster.

What Dask calls a scheduler file, in a folder that only its owner can enter, with the
credentials beside it. It is there for as long as the process that announced it.
"""

import json
import os
import platform
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from barrow.errors import InputError
from barrow.places import cache_folder
from barrow.sites.cluster import Cluster
from barrow.sites.security import KEY_FILE, write_credentials, write_private

FILE = "scheduler.json"
# Of the moment at which a process began, which the system gives in steps.
CLOCK_SECONDS = 0.1


@dataclass(frozen=True)
class Announcement:
    """A cluster that others can use."""

    address: str
    kind: str
    """What its workers are: ``local`` or ``slurm``."""
    host: str
    pid: int
    """Process that holds it."""
    began: float
    """When that process began: its number may be used again."""
    folder: Path

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return self.folder.name

    @property
    def path(self) -> Path:
        """The scheduler file."""
        return self.folder / FILE

    @property
    def is_here(self) -> bool:
        """Whether it is held by a process of this machine."""
        return self.host == platform.node()

    @property
    def is_alive(self) -> bool:
        """Whether its process is there; one of another machine is believed to be."""
        import psutil

        if not self.is_here:
            return True
        try:
            process = psutil.Process(self.pid)
            began: float = process.create_time()
            has_ended = process.status() == psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False
        return not has_ended and abs(began - self.began) < CLOCK_SECONDS


@contextmanager
def announcing(cluster: Cluster, kind: str) -> Iterator[Announcement]:
    """Let other processes find a cluster of our own, meanwhile."""
    import psutil

    credentials = cluster.credentials
    if credentials is None:
        raise InputError(f"{cluster} is not ours to announce: it was started elsewhere.")
    parent = _parent()
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = parent / f"{kind}-{uuid.uuid4().hex[:6]}"
    folder.mkdir(mode=0o700)
    began = psutil.Process().create_time()
    address = str(cluster.client.scheduler.address)
    made = Announcement(address, kind, platform.node(), os.getpid(), began, folder)
    try:
        write_credentials(credentials, folder)
        write_private(made.path, json.dumps(asdict(made), default=str) + "\n")
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def list_announced() -> list[Announcement]:
    """Return the clusters that this user has announced; what dead ones left is removed."""
    found = []
    for path in sorted(_parent().glob(f"*/{FILE}")):
        try:
            text = json.loads(path.read_text())
            announced = Announcement(**{**text, "folder": path.parent})
        except (OSError, ValueError, TypeError):
            continue
        if announced.is_alive:
            found.append(announced)
        else:
            shutil.rmtree(path.parent, ignore_errors=True)
    return found


def find_credentials(address: str, beside: Path | None = None) -> Path | None:
    """Return the folder with the credentials for an address; None if there is none.

    Parameters
    ----------
    beside
        A scheduler file in whose folder to look first.
    """
    if beside is not None and (beside.parent / KEY_FILE).is_file():
        return beside.parent
    if not address.startswith("tls://"):
        return None
    folders = (a.folder for a in list_announced() if a.address == address)
    return next(folders, None)


def _parent() -> Path:
    return cache_folder() / "open-clusters"
