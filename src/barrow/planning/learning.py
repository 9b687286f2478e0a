"""Learn from the chunks that are done how long those to come will take.

Numbers in, numbers out: whoever runs the tasks brings what they took, and asks
whether the rest should be cut another way.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Protocol

from barrow.model.cost import Cost
from barrow.model.plan import Plan
from barrow.model.reading import block_at, count_items, count_stored_bytes
from barrow.planning.adjusting import LEAST_GAIN_SECONDS, Change, Cut, adjust, layout_of, unit_block
from barrow.planning.chunks import count_chunks
from barrow.planning.refining import Measured, refine, rescale

# Fewer tasks, or less time, say little.
LEAST_UNITS = 8
LEAST_SECONDS = 0.05
# What this run has shown counts for more than what was known before.
WEIGHT = 0.95
# Nothing is considered again until chunks take so many times longer, or shorter.
NEWS = 1.5
MOST_CHANGES = 4


class Timed(Protocol):
    """What is known of a unit that is done."""

    @property
    def number(self) -> int:
        """Of its first chunk."""

    @property
    def cells(self) -> int:
        """Chunks in it."""

    @property
    def read_seconds(self) -> float:
        """Of its inputs."""

    @property
    def compute_seconds(self) -> float:
        """Of all calls of the function."""

    @property
    def write_seconds(self) -> float:
        """Of its answer."""

    @property
    def written_bytes(self) -> int:
        """Of its answer."""


@dataclass
class _Window:
    """Sums over the units since the last time somebody thought about them."""

    units: int = 0
    cells: int = 0
    read_seconds: float = 0.0
    compute_seconds: float = 0.0
    write_seconds: float = 0.0
    written_bytes: int = 0

    @property
    def seconds(self) -> float:
        return self.read_seconds + self.compute_seconds + self.write_seconds

    def add(self, unit: Timed) -> None:
        self.units += 1
        self.cells += unit.cells
        self.read_seconds += unit.read_seconds
        self.compute_seconds += unit.compute_seconds
        self.write_seconds += unit.write_seconds
        self.written_bytes += unit.written_bytes


@dataclass
class Learner:
    """Follows one run of a map and says when its chunks should be cut another way."""

    plan: Plan
    n_changes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._layout = layout_of(self.plan)
        # What was known before; without it, the first that is seen.
        self._base = self.plan.cost
        self._cut = Cut(1, self.plan.strides)
        self._window = _Window()
        # Units that begin before this chunk were cut another way.
        self._first = 0
        # Seconds for a chunk when it was last thought about; at first, what was predicted.
        self._known: float | None = self.plan.task_seconds or None
        self._ratios: dict[int, float] = {}

    def see(self, units: Iterable[Timed]) -> None:
        """Take in units that are done."""
        for unit in units:
            if unit.number >= self._first:
                self._window.add(unit)

    def propose(self, *, cells_left: int, first: int) -> Change | None:
        """Return how to cut what is left, if another way is clearly better.

        The caller follows it: from here on, measurements are taken to be of units
        that were cut in this way.

        Parameters
        ----------
        cells_left
            Chunks that were not handed out.
        first
            All chunks before this one were handed out.
        """
        window, price = self._window, self._layout.chunk_seconds
        if window.units < LEAST_UNITS or window.seconds + window.units * price < LEAST_SECONDS:
            return None
        self._window = _Window()
        each = window.seconds / window.cells
        if self.n_changes >= MOST_CHANGES or not self._is_news(each):
            return None
        left = cells_left * (each / self._layout.slots + price / self._cut.cells)
        if left < LEAST_GAIN_SECONDS:
            return None
        self._known = each
        cost = self._correct(self._mean(window))
        change = adjust(self.plan, cost, cells_left=cells_left, now=self._cut)
        if change is not None:
            self.n_changes += 1
            self._cut, self._first, self._known = change.cut, first, None
        return change

    def _is_news(self, seconds: float) -> bool:
        return self._known is None or not 1 / NEWS < seconds / self._known < NEWS

    def _correct(self, seen: Measured) -> Cost:
        """Blend what was seen into the cost: at this size, and in proportion at others."""
        if not self._base.is_measured:
            seconds = seen.compute_seconds / seen.calls / seen.slowdown
            self._base = replace(self._base, points=((seen.items, max(1e-9, seconds)),))
        refined = refine(self._base, seen, WEIGHT)
        self._ratios[seen.items] = refined.seconds(seen.items) / self._base.seconds(seen.items)
        ratios = tuple(sorted(self._ratios.items()))
        return replace(refined, points=rescale(self._base, ratios).points)

    def _mean(self, window: _Window) -> Measured:
        """Return the mean unit, as if all had been whole ones."""
        target = self.plan.target
        assert target is not None
        block = unit_block(self.plan.grid, self._cut.cells)
        step = {dim: min(n, (self._cut.strides or {}).get(dim, n)) for dim, n in block.items()}
        items = count_items(target, block_at(target, step, 0.5))
        whole_bytes = max(1, prod(block.values()) * target.dtype.itemsize)
        # At the ends of the data units are shorter; as many whole ones would be fewer.
        units = max(1.0, window.written_bytes) / whole_bytes
        return Measured(
            items=items,
            calls=count_chunks(block, step),
            slowdown=self._layout.slowdown(self.plan.cost, items),
            compute_seconds=window.compute_seconds / units,
            read_seconds=window.read_seconds / units,
            stored_bytes=count_stored_bytes(target, block_at(target, block, 0.5)),
            write_seconds=window.write_seconds / units,
            written_bytes=whole_bytes,
        )
