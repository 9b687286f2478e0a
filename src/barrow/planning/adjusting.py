"""Decide during a run whether the chunks not yet begun should be larger or smaller.

The grid of a run never changes: its cells are the chunks of the plan. But several
cells can be computed in one call, and one cell can be walked in strides. Pure: no
clock, no tasks; what was measured comes in as a cost.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from barrow.model.cost import Cost
from barrow.model.grid import Grid
from barrow.model.plan import Plan
from barrow.planning.candidates import Candidate, Choice
from barrow.planning.ladder import climb
from barrow.planning.layout import CHUNK_SECONDS, Layout, measure_crowd
from barrow.units import format_seconds

# A change has to be worth it: what it rests on is a guess as well.
LEAST_GAIN = 0.2
LEAST_GAIN_SECONDS = 0.2
# Units are no larger than they need to be for this share of the gain.
MOST_OF_IT = 0.95
# So many units for each slot are left at least, so that all end together.
UNITS_LEFT_PER_SLOT = 4


@dataclass(frozen=True)
class Cut:
    """How the cells of a grid are computed."""

    cells: int = 1
    """In one call, at most."""
    strides: Mapping[str, int] | None = None
    """Blocks in which such a unit is walked; empty or None when it is taken at once."""


@dataclass(frozen=True)
class Change:
    """Another way to cut, and what is expected of it."""

    before: Cut
    cut: Cut
    cells_left: int
    seconds_before: float
    """For all that is left, if nothing changed."""
    seconds_after: float
    message: str

    def details(self) -> dict[str, Any]:
        """Return its numbers, for the record."""
        return {
            "cells_before": self.before.cells,
            "cells": self.cut.cells,
            "strides_before": dict(self.before.strides or {}),
            "strides": dict(self.cut.strides or {}),
            "cells_left": self.cells_left,
            "seconds_before": self.seconds_before,
            "seconds_after": self.seconds_after,
        }


def adjust(plan: Plan, cost: Cost, *, cells_left: int, now: Cut) -> Change | None:
    """Return a clearly better way to do what is left; None if there is none.

    Parameters
    ----------
    cost
        That of the plan, corrected by what the run has shown so far.
    cells_left
        Chunks of the plan's grid that were not handed out.
    now
        How they would be computed if nothing changed.
    """
    if plan.target is None or plan.result == "value" or not cost.is_measured or not cells_left:
        return None
    rest = _Rest(plan, cost, cells_left)
    before = rest.seconds(now)
    # The simplest come first, and the first that brings nearly all of the gain is taken.
    tried = [(cut, rest.seconds(cut)) for cut in rest.list_cuts(now) if rest.fits(cut)]
    best = min((seconds for _, seconds in tried), default=before)
    if best > (1 - LEAST_GAIN) * before or before - best < LEAST_GAIN_SECONDS:
        return None
    cut, after = next(pair for pair in tried if before - pair[1] >= MOST_OF_IT * (before - best))
    message = f"{rest.describe(cut, now)} {_compare(before, after)}"
    return Change(now, cut, cells_left, before, after, message)


class _Rest:
    """What is left of a run: how long it takes, cut one way or another."""

    def __init__(self, plan: Plan, cost: Cost, cells_left: int) -> None:
        assert plan.target is not None
        self._plan = plan
        self._grid = plan.grid
        self._left = cells_left
        self._layout = layout_of(plan)
        self._choice = Choice(plan.target, cost, plan.result)

    def seconds(self, cut: Cut) -> float:
        units = -(-self._left // cut.cells)
        return self._layout.makespan(units, self.candidate(cut).task_seconds)

    def fits(self, cut: Cut) -> bool:
        return self.candidate(cut).peak_bound <= self._plan.budget_bytes

    def candidate(self, cut: Cut) -> Candidate:
        block = unit_block(self._grid, cut.cells)
        strides = {dim: min(n, (cut.strides or {}).get(dim, n)) for dim, n in block.items()}
        return self._choice.predict(self._layout, block, strides if strides != block else None)

    def list_cuts(self, now: Cut) -> Iterator[Cut]:
        """Yield the ways to cut, simplest first."""
        slots = self._layout.slots
        numbers = list_cells(self._grid, self._left // (UNITS_LEFT_PER_SLOT * slots))
        for cells in numbers:
            yield Cut(cells, {})
        if now.strides:
            for cells in numbers:
                yield Cut(cells, now.strides)
        chunk = dict(self._grid.chunk)
        rungs = climb(
            chunk,
            grain={},
            cuttable=self._plan.cuttable,
            count_items=self._choice.items,
            most_items=2**62,
        )
        for strides in reversed(rungs):
            if strides != chunk:
                yield Cut(1, strides)

    def describe(self, cut: Cut, now: Cut) -> str:
        spent = format_seconds(self.candidate(now).task_seconds / now.cells)
        told = format_seconds(self._plan.task_seconds)
        why = f"A chunk takes {spent}, {told} were predicted"
        if cut.cells == now.cells and cut.strides:
            size = " × ".join(f"{dim} {n}" for dim, n in cut.strides.items())
            return f"{why}: from here on it is walked in blocks of {size}."
        price = format_seconds(self._layout.chunk_seconds)
        many = f"{cut.cells:,} chunks are" if cut.cells > 1 else "each chunk is"
        return f"{why}, and {price} to hand out a call: from here on {many} computed at once."


def layout_of(plan: Plan) -> Layout:
    """Return who runs the tasks of a plan; all of them are up by now."""
    together = plan.slots if plan.is_local else plan.threads
    return Layout(
        engine=plan.engine,
        workers=plan.workers,
        threads=plan.threads,
        at_once=plan.at_once,
        memory_bytes=plan.memory_bytes,
        budget_bytes=plan.budget_bytes,
        chunk_seconds=CHUNK_SECONDS[plan.engine],
        **measure_crowd(together, plan.cores, is_local=plan.is_local),
    )


def unit_block(grid: Grid, cells: int) -> dict[str, int]:
    """Return the lengths of a block of so many cells.

    Examples
    --------
    >>> unit_block(Grid({"y": 10, "x": 8}, {"y": 1, "x": 2}), cells=8)
    {'y': 2, 'x': 8}
    """
    ranges = grid.block(range(cells))
    return {dim: stop - start for dim, (start, stop) in zip(grid.lengths, ranges, strict=True)}


def list_cells(grid: Grid, most: int) -> list[int]:
    """Return how many cells can be put together: parts of a row, then rows, then planes.

    Examples
    --------
    >>> list_cells(Grid({"y": 100, "x": 10}, {"y": 1, "x": 1}), most=100)
    [1, 2, 4, 5, 10, 20, 40, 80]
    """
    found, row = {1}, 1
    for count in reversed(grid.counts):
        along = 2
        while along < 2 * count:
            # Equal parts: with 8 out of 10 there would be one of 2 in each row.
            parts = -(-count // along)
            found.add(-(-count // parts) * row)
            along *= 2
        row *= count
    return sorted(cells for cells in found if cells <= max(1, most))


def _compare(before: float, after: float) -> str:
    return f"The rest should take {format_seconds(after)} instead of {format_seconds(before)}."
