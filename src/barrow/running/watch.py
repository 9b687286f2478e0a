"""Watch the disk on which a result is made, and wait when it is full.

Nothing is lost when a disk is full: what is done is kept, what is not is put back.
So a run goes on until there really is no room, and then waits for some.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from barrow.errors import OutputError
from barrow.model.grid import Grid
from barrow.running.disk import FULL, PASSING, Room, is_writable, measure_room
from barrow.running.folders import RunFolder
from barrow.running.interrupts import interruptible
from barrow.running.sinks import Trouble, ZarrSink
from barrow.running.task import TaskReport
from barrow.shared import Ranges
from barrow.units import format_bytes, format_count, format_seconds

LOOK_SECONDS = 1.0
POLL_SECONDS = 0.25
# How long to wait for room; BARROW_DISK_WAIT, in seconds, changes it.
PATIENCE_SECONDS = 60.0
# So much is left to others, and to the record, if the rest would not fit anyway.
RESERVE_BYTES = 2**25
RESERVE_SHARE = 0.01
# A test whether there is room again takes no more than this.
LARGEST_TEST_BYTES = 2**26
# Chunks whose size on the disk was looked at before it is believed.
ENOUGH_SEEN = 3


@dataclass
class Watch:
    """The disk under one run: whether there is room, and what to say if there is none.

    Parameters
    ----------
    sink
        Where blocks are stored.
    cells_left
        Chunks that are not stored yet.
    cell_bytes
        Of one chunk, uncompressed.
    slots
        Tasks that run at once.
    is_ready
        Whether, apart from room for chunks, the run could go on.
    say
        Called with a sentence that somebody should read now: kind, sentence, numbers.
    """

    folder: RunFolder
    sink: ZarrSink
    grid: Grid
    cells_left: int
    cell_bytes: int
    slots: int
    is_ready: Callable[[], bool]
    say: Callable[[str, str, dict[str, float]], None]
    is_open: bool = field(default=True, init=False)
    """Whether more may be handed out."""
    n_paused: int = field(default=0, init=False)
    _share: float = field(default=0.0, init=False)
    _n_seen: int = field(default=0, init=False)
    _looked: float = field(default=0.0, init=False)
    _stuck_since: float | None = field(default=None, init=False)
    _why: str = field(default="the disk is full", init=False)
    _is_warned: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        paths = [self.folder.store, self.folder.record_path, Path(self.sink.path, "zarr.json")]
        self._places = {path: _identify(path) for path in paths}

    @property
    def left_bytes(self) -> int:
        """What is still to be stored, as far as is known; at most, before anything is."""
        share = self._share if self._n_seen >= ENOUGH_SEEN else 1.0
        return int(self.cells_left * self.cell_bytes * share)

    def see(self, report: TaskReport) -> None:
        """Take in what was done, or could not be stored; look at the disk once in a while."""
        self.cells_left -= report.n_cells
        if report.chunks:
            self._stuck_since = None
        if report.trouble is not None:
            self.on_trouble(report.trouble)
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self.look(report)

    def look(self, report: TaskReport | None = None) -> None:
        """Look at the disk: is the folder still there, and is there room in it?"""
        self.check_presence()
        if report is not None and report.chunks:
            # One chunk in a second or so tells how well they are compressed.
            self._learn(self.grid.ranges(report.chunks[-1].number))
        room = measure_room(self.folder.store)
        if room is None or self.left_bytes <= room.free_bytes:
            return
        if room.free_bytes < min(RESERVE_BYTES, RESERVE_SHARE * room.total_bytes):
            self.close()
        elif self._n_seen >= ENOUGH_SEEN and not self._is_warned:
            self._is_warned = True
            self.say(
                "space",
                f"The disk will be full: {self._describe(room)}. The run goes on, and waits when "
                "nothing more fits.",
                self._numbers(room),
            )

    def _learn(self, ranges: Ranges) -> None:
        with suppress(OSError):
            share = self.sink.stored_share(ranges)
            self._n_seen += 1
            self._share += (share - self._share) / self._n_seen

    def check_presence(self) -> None:
        """Raise an error if the folder was removed or replaced: what is written there is lost."""
        for path, before in self._places.items():
            try:
                is_same = _identify(path) == before
            except (FileNotFoundError, NotADirectoryError):
                is_same = False
            except OSError:
                continue  # a server that does not answer says nothing about the file
            if not is_same:
                raise OutputError(
                    f"{path} was removed or replaced while the run was writing there, so its "
                    "result cannot be whole. Start the same call again: what is missing is done "
                    "again."
                )

    def close(self, why: str = "the disk is full") -> None:
        """Hand out nothing more until there is room."""
        if not self.is_open:
            return
        self.is_open, self._why = False, why
        if self._stuck_since is not None:
            return  # it was said, and nothing could be done since
        self._stuck_since = time.monotonic()
        self.n_paused += 1
        room = measure_room(self.folder.store)
        self.say(
            "paused",
            f"Waits: {why}. {_upper(self._describe(room))}. Put that right and the run goes on, or "
            "stop it with Ctrl-C and start the same call again later.",
            self._numbers(room),
        )

    def wait(self) -> None:
        """Return when there is room again; raise an error if that takes too long."""
        began = time.monotonic()
        if self._stuck_since is None:
            self._stuck_since = began
        while True:
            with interruptible():
                time.sleep(POLL_SECONDS)
            self.check_presence()
            if self._has_room() and self.is_ready():
                break
            if time.monotonic() - self._stuck_since > find_patience():
                raise OutputError(self._explain())
        self.is_open = True
        spent = time.monotonic() - began
        self.say("resumed", f"Goes on after {format_seconds(spent)}.", {"seconds": round(spent, 3)})

    def on_trouble(self, trouble: Trouble) -> None:
        """Wait from here on if what went wrong may pass; raise an error if not."""
        self.check_presence()
        if trouble.code not in PASSING:
            raise OutputError(
                f"{self._place} cannot be written any more: {trouble.text}. {self._keeping()}"
            )
        self.close("the disk is full" if trouble.code in FULL else f"{trouble.text} at its store")

    def _has_room(self) -> bool:
        """Return whether the next few chunks would fit."""
        next_cells = min(self.cells_left, self.slots)
        share = min(1.0, 2 * self._share) if self._n_seen >= ENOUGH_SEEN else 1.0
        needed = int(next_cells * self.cell_bytes * share)
        room = measure_room(self.folder.store)
        if room is not None and self.left_bytes > room.free_bytes:
            needed += int(min(RESERVE_BYTES, RESERVE_SHARE * room.total_bytes))
            if needed > room.free_bytes:
                return False
        return is_writable(self.folder.root, min(max(needed, 2**16), LARGEST_TEST_BYTES))

    @property
    def _place(self) -> Path:
        return self.folder.final or self.folder.store

    def _describe(self, room: Room | None) -> str:
        amount = "about" if self._n_seen >= ENOUGH_SEEN else "up to"
        needed = f"{amount} {format_bytes(self.left_bytes)} more is needed"
        if room is None:
            return f"{needed} at {self.folder.store.parent}"
        free = f"{format_bytes(room.free_bytes)} is free at {self.folder.store.parent}"
        if self.is_open or room.free_bytes < self.left_bytes:
            return f"{needed}, {free}"
        return f"{needed}, {free}, so it would fit: a quota or the number of files is used up"

    def _numbers(self, room: Room | None) -> dict[str, float]:
        free = -1 if room is None else room.free_bytes
        return {"left_bytes": self.left_bytes, "free_bytes": free, "cells_left": self.cells_left}

    def _explain(self) -> str:
        room = measure_room(self.folder.store)
        return (
            f"{self._place} is not whole: {self._why}. "
            f"{_upper(self._describe(room))}; waited {format_seconds(find_patience())}. "
            f"{self._keeping()}"
        )

    def _keeping(self) -> str:
        if self.folder.final is None:
            return (
                "Free some space, move the cache folder with BARROW_CACHE, or give the result a "
                "place with to=: then a run can be taken up again."
            )
        done = format_count(len(self.grid) - self.cells_left, "chunk")
        return (
            f"What is done ({done} of {len(self.grid):,}) is kept in {self.folder.store}. Put that "
            "right and start the same call again: it does only what is missing."
        )


def find_patience() -> float:
    """Return how long a run waits for room, in seconds."""
    try:
        return max(0.0, float(os.environ.get("BARROW_DISK_WAIT", PATIENCE_SECONDS)))
    except ValueError:
        return PATIENCE_SECONDS


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _identify(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
