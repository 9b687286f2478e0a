"""The backlog: chunks still to do, handed out in units.

A unit is a range of chunk numbers that make up one block and are computed in one
call. Mostly it is one chunk; a run that learns that its chunks are too small takes
several. They are handed out in order, so what was handed out is everything before
one number, and a million chunks are never listed.
"""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from barrow.model.grid import Grid


@dataclass(frozen=True)
class Batch:
    """Units that travel together."""

    units: list[range]
    strides: Mapping[str, int] | None = None
    """Blocks in which each unit is walked; None for those of the work."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """Blocks into which each unit is split because it did not fit: each reads for itself."""
    losses: int = 0
    """How many times a worker was lost that had it."""
    attempts: int = 0
    """How many times its first unit was tried."""
    is_alone: bool = False
    """Whether nothing else may run meanwhile, so that it is known who did it."""


@dataclass
class Backlog:
    """The chunks of a grid that are not finished.

    Examples
    --------
    >>> backlog = Backlog(Grid({"y": 4, "x": 6}, {"y": 1, "x": 1}), finished={7})
    >>> backlog.take(1).units, backlog.left
    ([range(0, 1)], 22)
    >>> backlog.cut(cells=3)
    >>> backlog.take(4).units, backlog.left
    ([range(1, 4), range(4, 6), range(6, 7), range(8, 11)], 13)
    """

    grid: Grid
    finished: Collection[int] = field(default_factory=frozenset)
    cells: int = field(default=1, init=False)
    """Chunks in a unit, at most."""
    strides: Mapping[str, int] | None = field(default=None, init=False)
    first: int = field(default=0, init=False)
    """All chunks before this one were handed out, or finished before."""
    left: int = field(init=False)
    """Chunks that were never handed out."""
    parts: Mapping[str, int] = field(default_factory=dict, init=False)
    _returned: deque[Batch] = field(default_factory=deque, init=False)

    def __post_init__(self) -> None:
        self.left = len(self.grid) - len(self.finished)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to hand out."""
        return not self.left and not self._returned

    @property
    def wants_quiet(self) -> bool:
        """Whether what comes next must run alone."""
        return bool(self._returned) and self._returned[0].is_alone

    @property
    def units_left(self) -> int:
        """About how many units are left that were never handed out."""
        return -(-self.left // self.cells)

    def put_back(self, batch: Batch) -> None:
        """Take back what was handed out and not done; it goes out again first."""
        if batch.is_alone:
            self._returned.append(batch)
        else:
            self._returned.appendleft(batch)

    def cut(self, cells: int, strides: Mapping[str, int] | None = None) -> None:
        """Hand out units of so many chunks from here on, walked in these strides."""
        self.cells, self.strides = cells, strides

    def split(self, parts: Mapping[str, int]) -> None:
        """Hand out single chunks in these parts from here on: whole ones do not fit."""
        self.cells, self.strides, self.parts = 1, None, parts

    def take(self, count: int) -> Batch:
        """Hand out the next few units; what was put back comes first, as it is."""
        if self._returned:
            return self._returned.popleft()
        units: list[range] = []
        while self.left and len(units) < count:
            while self.first in self.finished:
                self.first += 1
            start, length = self.first, 1
            if self.cells > 1:
                length = self.grid.longest_block(start, self._count_free(start))
            self.first += length
            self.left -= length
            units.append(range(start, start + length))
        return Batch(units, self.strides, self.parts)

    def _count_free(self, start: int) -> int:
        """Return how many of the next chunks are not finished, as far as it matters."""
        if self.finished:
            for number in range(start + 1, start + self.cells):
                if number in self.finished:
                    return number - start
        return self.cells
