"""The folder of a run: its plan, its record, its numbers, and a stored result.

A result with a place of its own (``to=``) is made in a hidden folder beside that
place and renamed when it is whole, so what stands there is never half written.
All other runs live in the user's cache folder and go when their result goes.
"""

import os
import re
import shutil
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import IO

from barrow.errors import InputError, OutputError
from barrow.places import cache_folder
from barrow.running import locks
from barrow.running.disk import make_safe, sync_folder

_OTHER_FORMATS = {".h5", ".hdf5", ".nc", ".npy", ".npz", ".tif", ".tiff", ".parquet", ".csv"}
_STALE_SECONDS = 24 * 3600.0
_MOST_TURNS = 20


@dataclass(frozen=True)
class RunFolder:
    """Where one run keeps its files."""

    root: Path
    """Holds ``plan.json``, ``record.sqlite`` and ``metrics.json``."""
    store: Path
    """The Zarr store of the result while it is being made."""
    final: Path | None = None
    """Where the store goes when it is whole."""
    is_temporary: bool = False
    _lock: list[IO[str]] = field(default_factory=list, repr=False)

    @property
    def plan_path(self) -> Path:
        """The plan, as JSON."""
        return self.root / "plan.json"

    @property
    def record_path(self) -> Path:
        """The record, as SQLite."""
        return self.root / "record.sqlite"

    @property
    def metrics_path(self) -> Path:
        """The numbers of the run, as JSON."""
        return self.root / "metrics.json"

    @property
    def key_path(self) -> Path:
        """The fingerprint of what is computed here."""
        return self.root / "key"

    @property
    def lease_path(self) -> Path:
        """The number of the run that may write into the store now."""
        return self.root / "lease"

    @property
    def call_path(self) -> Path:
        """The call that began the run, see :mod:`barrow.running.saved_call`."""
        return self.root / "call"

    @property
    def is_finished(self) -> bool:
        """Whether a run has ended here; while it is made, a result has another place to go to."""
        return self.final is None and self.metrics_path.exists()

    def read_key(self) -> str | None:
        """Return the fingerprint of what was begun here, if anything was."""
        try:
            return self.key_path.read_text(errors="replace").strip()
        except OSError:
            return None

    @property
    def is_begun(self) -> bool:
        """Whether there may be something here that is worth being taken up again."""
        try:
            self.key_path.lstat()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True

    def finish(self) -> "RunFolder":
        """Move a whole result to its place and return the folder as it is then."""
        self._end_lease()
        if self.final is None:
            return self
        try:
            # What stands at its place must be whole, also after a loss of power.
            make_safe(self.store)
            self.store.rename(self.final)
        except OSError as error:
            raise OutputError(
                f"The result is whole but cannot be moved to {self.final}: {error.strerror}. "
                f"It is kept in {self.store}."
            ) from error
        self.release()
        sync_folder(self.final.parent)
        finished = RunFolder(self.final / ".barrow", self.final)
        # Only now: until it was moved, the result could have been taken up again.
        for path in (finished.call_path, finished.lease_path):
            path.unlink(missing_ok=True)
        return finished

    def release(self) -> None:
        """Let other processes work here; what is still on its way from this run is too late."""
        self._end_lease()
        while self._lock:
            lock = self._lock.pop()
            if lock.name.endswith("owner"):
                with suppress(OSError):
                    os.unlink(lock.name)
            lock.close()

    def begin_lease(self) -> int:
        """Let a new run write into the store, and no earlier one; return its number."""
        number = time.time_ns()
        try:
            self._write_lease(number)
        except OSError as error:
            raise _unwritable(self.final or self.store, error.strerror or str(error)) from None
        return number

    def _end_lease(self) -> None:
        # Not removed: over a network a file that was missed once may be missed for a while.
        try:
            if self.lease_path.exists():
                self._write_lease(0)
        except OSError:  # a disk that is full has room for one file less
            self.lease_path.unlink(missing_ok=True)

    def _write_lease(self, number: int) -> None:
        beside = self.lease_path.with_suffix(".new")
        beside.write_text(str(number))
        beside.replace(self.lease_path)

    def remove(self) -> None:
        """Delete everything in the folder."""
        top = self.store if self.final else self.root
        # The lock goes last, or another process might begin here meanwhile.
        shutil.rmtree(top, ignore_errors=True)
        self.release()
        for path in {self.root, top}:
            with suppress(OSError):
                path.rmdir()  # some file systems keep the name of a file that is open


def open_run_folder(name: str, folder: str | PathLike[str] | None = None) -> RunFolder:
    """Return a new folder for a run whose result needs no place of its own."""
    if folder is not None:
        root = Path(folder).absolute()
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise OutputError(f"folder={str(folder)!r} exists and is not empty. Choose another.")
        return _create(RunFolder(root, root / "result.zarr"))
    runs = cache_folder() / "runs"
    _remove_stale(runs)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:40]
    root = runs / f"{stamp}-{safe}-{locks.host_name()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    return _create(RunFolder(root, root / "result.zarr", is_temporary=True))


def check_place(to: str | PathLike[str]) -> None:
    """Refuse a place for a result before any work is done for it."""
    final = Path(to).absolute()
    if final.suffix.lower() in _OTHER_FORMATS:
        raise InputError(
            f"to={str(to)!r} looks like a {final.suffix} file, but results are Zarr stores. "
            f"Write, for example, to={str(Path(to).with_suffix('.zarr'))!r}."
        )
    if find_result(to) is None:
        parent = next(path for path in final.parents if path.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            raise _unwritable(final, f"{parent} is no folder that you may write to")


def find_result(to: str | PathLike[str]) -> RunFolder | None:
    """Return the folder of a whole result at a place; None if nothing is there.

    Raises an :class:`~barrow.errors.OutputError` if something else is there.
    """
    final = Path(to).absolute()
    if not final.exists() and not final.is_symlink():
        return None
    found = RunFolder(final / ".barrow", final)
    if found.read_key() is None and found.root.is_dir():
        raise damaged_result(found, f"{found.key_path} cannot be read")
    if found.read_key() is None:
        raise OutputError(
            f"to={str(to)!r} exists and was not written by barrow. Choose another place, or move "
            "what is there away."
        )
    return found


def find_run(folder: str | PathLike[str]) -> RunFolder:
    """Return the folder of a run from its place, a hidden folder beside it, or the folder itself.

    A finished run has its numbers, see :attr:`RunFolder.is_finished`; of an unfinished one
    it is the folder in which its call is kept.
    """
    given = Path(folder).absolute()
    path = given.parent if given.name == ".barrow" else given
    if hidden := re.fullmatch(r"\.(.+)\.(partial|stages)", path.name):
        path = path.with_name(hidden[1])
    found = RunFolder(path / ".barrow", path)
    if found.read_key() is not None:
        return found
    store, stages = partial_of(path), checkpoint_folder(path)
    begun = RunFolder(store / ".barrow", store, path)
    between = RunFolder(stages, stages, path)
    for unfinished in (begun, between):
        if unfinished.call_path.exists():
            return unfinished
    if begun.root.is_dir():
        return begun
    alone = RunFolder(given, given / "result.zarr")
    if alone.record_path.exists() and alone.read_key() is not None:
        return alone
    raise InputError(
        f"{str(folder)!r} is no run of barrow: nothing was stored there, and there is no "
        f"{store.name} beside it. Give the place of a result as in to=..., or the folder of a run."
    )


def partial_of(final: Path) -> Path:
    """Return the hidden folder in which the result for a place is made."""
    return final.with_name(f".{final.name}.partial")


def checkpoint_folder(to: str | PathLike[str]) -> Path:
    """Return where a pipeline keeps what lies between its stages, beside its result."""
    final = Path(to).absolute()
    return final.with_name(f".{final.name}.stages")


def open_result_folder(to: str | PathLike[str]) -> RunFolder:
    """Return the folder in which the result for a place is made, new or left by an earlier run."""
    final = Path(to).absolute()
    store = partial_of(final)
    for _ in range(_MOST_TURNS):
        made = _create(RunFolder(store / ".barrow", store, final))
        try:
            lock = locks.lock_folder(made.root, final)
        except FileNotFoundError:
            continue  # whoever had it has just finished, and moved it to its place
        if lock is None:
            break
        made._lock.append(lock)
        if locks.is_at(lock, Path(lock.name)):
            return made
        made.release()
    raise OutputError(
        f"Another process is writing {final} right now. Wait for it, or choose another place."
    )


def damaged_result(folder: RunFolder, why: str) -> OutputError:
    """Return the error for a whole result of which it cannot be told any more what it is."""
    return OutputError(
        f"{folder.store} holds a result, but its folder .barrow is damaged: {why}. It is left as "
        "it is. Move it away to compute it again, or choose another place."
    )


def empty(folder: RunFolder) -> None:
    """Remove what an earlier run left in a folder, but for its lock."""
    # Without its key nobody takes up what is left if this is interrupted.
    for path in (folder.key_path, *_list_left(folder)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
    for path in _list_left(folder):
        raise OutputError(
            f"{path} is left from an earlier run and cannot be removed. Look whether somebody "
            "still uses it, or whether it is write-protected."
        )


def _list_left(folder: RunFolder) -> list[Path]:
    kept = {folder.root, folder.root / "lock", folder.root / "owner"}
    return [p for p in (*folder.root.iterdir(), *folder.store.iterdir()) if p not in kept]


def _create(folder: RunFolder) -> RunFolder:
    try:
        folder.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = folder.root / f".probe-{uuid.uuid4().hex}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        where = folder.final or folder.root
        raise _unwritable(where, f"{error.strerror} ({error.filename})") from error
    return folder


def _unwritable(place: Path, why: str) -> OutputError:
    return OutputError(
        f"{place} cannot be written: {why}. Choose a place where you may create files."
    )


def _remove_stale(runs: Path) -> None:
    """Remove folders of processes that were killed before they could clean up."""
    now = time.time()
    for path in runs.iterdir() if runs.is_dir() else ():
        *_, host, pid, _ = ("", "", *path.name.split("-"))
        try:
            is_old = now - path.stat().st_mtime > _STALE_SECONDS
        except OSError:
            continue
        # What runs on another machine cannot be seen from here.
        if is_old and host == locks.host_name() and not locks.is_alive(pid):
            shutil.rmtree(path, ignore_errors=True)
