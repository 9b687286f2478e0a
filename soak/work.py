"""What the runs compute, and the book that their functions keep of every call.

Each line of the book is one write to a file opened for appending, so it is there however
the process ends a moment later.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HEIGHT, WIDTH = 48, 64
FRAMES_PER_CHUNK = 4
# A chunk that is hungry takes five times what it shows when it is tried out: more than a worker
# of 1 GB allows one task, and little enough for half a chunk.
SHOWN_BYTES_PER_FRAME = 37 * 10**6
HUNGER = 5


def make_frames(count: int) -> np.ndarray:
    """Return frames of whole numbers as float32; the pixel in the middle is the frame's number."""
    frames = np.random.default_rng(count).integers(0, 4096, (count, HEIGHT, WIDTH)).astype("f4")
    frames[:, HEIGHT // 2, WIDTH // 2] = np.arange(count)
    return frames


def smooth(x, *, book="", seconds=0.0, halo=0, hunger="none"):
    """Return a map of frames: a weighted mean with the neighbours, or a root."""
    with Call(x, book, seconds, halo, hunger):
        if not halo:
            return np.sqrt(x * np.float32(3) + np.float32(1))
        y = x.copy()
        y[1:-1] = np.float32(0.3) * x[:-2] + np.float32(0.4) * x[1:-1] + np.float32(0.3) * x[2:]
        return y


def add_up(x, *, book="", seconds=0.0, hunger="none"):
    """Return sums over the frames; their last digits depend on the order of adding."""
    with Call(x, book, seconds, 0, hunger):
        return (x / np.float32(7)).sum(axis=0, dtype="f4")


def count_up(x, *, book="", seconds=0.0, hunger="none"):
    """Return sums over the frames that are exact in any order."""
    with Call(x, book, seconds, 0, hunger):
        return x.sum(axis=0, dtype="f8")


@dataclass
class Call:
    """One call of a function: written down, as long and as hungry as it should be."""

    x: np.ndarray
    book: str
    seconds: float
    """For a whole chunk."""
    halo: int
    hunger: str

    def __enter__(self) -> None:
        own = self.x[self.halo : len(self.x) - self.halo]
        self.first, self.count = int(own[0, HEIGHT // 2, WIDTH // 2]), len(own)
        self._write("begun")
        time.sleep(self.seconds * self.count / FRAMES_PER_CHUNK)
        chunk = self.first // FRAMES_PER_CHUNK
        if self.hunger == "all" or (self.hunger == "some" and chunk % 7 == 3):
            try:
                taken = np.empty(self.count * HUNGER * SHOWN_BYTES_PER_FRAME, "u1")
            except MemoryError:
                self._write("failed")
                raise
            taken[: taken.size // 16] = 1  # some pages are enough: all were asked for

    def __exit__(self, kind: object, *_: object) -> None:
        self._write("ended" if kind is None else "failed")

    def _write(self, what: str) -> None:
        if self.book:
            append(self.book, f"{what} {self.first} {self.count} {os.getpid()}")


def append(path: str | Path, text: str) -> None:
    """Add one line with the time to a file, in one write."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{time.monotonic():.6f} {text}\n".encode())
    finally:
        os.close(file)


@dataclass
class Book:
    """The lines that were written so far, read as they come."""

    path: Path
    lines: list[list[str]] = field(default_factory=list)
    _place: int = 0
    _rest: str = ""

    def read(self) -> list[list[str]]:
        """Return all lines: time, what, and the rest."""
        if self.path.exists():
            with self.path.open() as file:
                file.seek(self._place)
                text = self._rest + file.read()
                self._place = file.tell()
            *whole, self._rest = text.split("\n")
            self.lines += [line.split() for line in whole]
        return self.lines

    def count(self, what: str) -> int:
        """Return how many lines of a kind there are."""
        return sum(line[1] == what for line in self.read())
