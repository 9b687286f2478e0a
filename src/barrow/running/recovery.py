"""Decide what to do with chunks that failed.

A chunk that did not fit is split, and split again, until it fits or nothing is left
to cut. A chunk whose worker was lost is done again; if workers keep dying with it, it
runs alone, and only then is it to blame: it is split as if it had not fitted. Numbers
in, batches out: nothing runs here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from barrow.errors import BudgetError, ClusterError
from barrow.model.grid import Grid, format_ranges
from barrow.running.backlog import Backlog, Batch
from barrow.units import format_bytes, format_count

# So many workers may be lost with a chunk, among others, before it has to run alone.
MOST_LOSSES = 1
# Alone, so many before it is split; if it cannot be, some more: perhaps somebody else did it.
MOST_LOSSES_ALONE = 1
MOST_LOSSES_AT_ALL = 6
# If more of the chunks than this did not fit, the rest is split before it is tried.
MUCH_SPLIT = 0.2


@dataclass
class Recovery:
    """Follows the failures of one run.

    Parameters
    ----------
    grain
        Storage chunk along each dimension: parts are whole ones as long as possible.
    """

    name: str
    grid: Grid
    cuttable: Collection[str]
    grain: Mapping[str, int]
    budget_bytes: int
    n_split: int = field(default=0, init=False)
    n_lost: int = field(default=0, init=False)
    n_done: int = field(default=0, init=False)

    def on_memory(self, batch: Batch, backlog: Backlog) -> str:
        """Put back, in smaller parts, a batch whose first unit did not fit; say it in words."""
        unit = batch.units[0]
        if len(unit) > 1:
            # Several chunks in one call were too much: one at a time, as planned.
            backlog.cut(1)
            self.take_apart(batch, backlog)
            return f"{self.name_unit(unit)} did not fit together: they are done one by one."
        parts = self.halve(unit, batch.parts or batch.strides or {})
        if parts is None:
            raise BudgetError(self._explain(unit))
        self.drop_first(batch, backlog)
        self.n_split += 1
        attempts = batch.attempts + 1
        backlog.put_back(replace(batch, units=[unit], strides={}, parts=parts, attempts=attempts))
        size = " × ".join(f"{dim} {n}" for dim, n in parts.items())
        return (
            f"{self.name_unit(unit)} needed more than {format_bytes(self.budget_bytes)}: it is "
            f"split into parts of {size}."
        )

    def take_apart(self, batch: Batch, backlog: Backlog) -> None:
        """Put back a batch whose first unit failed, the chunks of that unit one by one."""
        self.drop_first(batch, backlog)
        attempts = batch.attempts + 1
        for number in reversed(batch.units[0]):
            backlog.put_back(Batch([range(number, number + 1)], {}, attempts=attempts))

    @staticmethod
    def drop_first(batch: Batch, backlog: Backlog) -> None:
        """Put back a batch but for its first unit."""
        if len(batch.units) > 1:
            backlog.put_back(replace(batch, units=batch.units[1:], attempts=0))

    def on_loss(self, batch: Batch, backlog: Backlog) -> str:
        """Put back a batch whose worker was lost; say it in words."""
        self.n_lost += 1
        units, losses = batch.units, batch.losses + 1
        batch = replace(batch, losses=losses, attempts=batch.attempts + 1)
        name = self.name_unit(range(units[0].start, units[-1].stop))
        if len(units) > 1:
            # One of them may be the cause: half as many each time until it is found.
            middle = len(units) // 2
            for half in (units[middle:], units[:middle]):
                backlog.put_back(replace(batch, units=half))
            return f"A worker was lost with {name}: they are done again, in two batches."
        if losses <= MOST_LOSSES:
            backlog.put_back(batch)
            return f"A worker was lost with {name}: it is done again."
        unit = units[0]
        parts = self.halve(unit, batch.parts or batch.strides or {})
        most = MOST_LOSSES_AT_ALL if parts is None else MOST_LOSSES + MOST_LOSSES_ALONE
        if not batch.is_alone or losses <= most:
            backlog.put_back(replace(batch, is_alone=True))
            return f"{losses} workers were lost with {name}: it runs alone now."
        if parts is None:
            raise ClusterError(
                f"{losses} workers died while they had {name} of '{self.name}', the last "
                f"{losses - MOST_LOSSES - 1} with nothing else to do, and it cannot be made "
                "smaller. "
                "Either it needs more memory than a worker has, or its function ends the process. "
                f"Try it alone: {self._slice(unit)}"
            )
        self.n_split += 1
        backlog.put_back(replace(batch, strides={}, parts=parts, losses=MOST_LOSSES, is_alone=True))
        size = " × ".join(f"{dim} {n}" for dim, n in parts.items())
        return f"{losses} workers were lost with {name}, even alone: it is split into {size}."

    def on_done(self, batch: Batch, n_cells: int, backlog: Backlog) -> str | None:
        """Learn from what went well; say so if the rest is split from here on."""
        self.n_done += n_cells
        is_common = self.n_split >= 2 and self.n_split > MUCH_SPLIT * self.n_done
        if not batch.parts or not is_common or backlog.parts == batch.parts:
            return None
        backlog.split(batch.parts)
        size = " × ".join(f"{dim} {n}" for dim, n in batch.parts.items())
        return f"{self.n_split} of {self.n_done} chunks did not fit: the rest is split into {size}."

    def halve(self, unit: range, parts: Mapping[str, int]) -> dict[str, int] | None:
        """Return parts about half as large, whole storage chunks first; None if there are none.

        Examples
        --------
        >>> recovery = Recovery("f", Grid({"y": 80, "x": 60}, {"y": 40, "x": 60}), ("y", "x"),
        ...     {"y": 10, "x": 60}, 0)
        >>> recovery.halve(range(0, 1), {}), recovery.halve(range(0, 1), {"y": 10, "x": 60})
        ({'y': 20, 'x': 60}, {'y': 10, 'x': 30})
        """
        ranges = self.grid.block(unit)
        now = {
            dim: min(stop - start, parts.get(dim, stop - start))
            for dim, (start, stop) in zip(self.grid.lengths, ranges, strict=True)
        }
        sides = [dim for dim in now if dim in self.cuttable and now[dim] > 1]
        if not sides:
            return None
        grains = {dim: now[dim] / max(1, self.grain.get(dim, 1)) for dim in sides}
        many = [dim for dim in sides if grains[dim] > 1]
        if many:
            dim = max(many, key=grains.__getitem__)
            grain = max(1, self.grain.get(dim, 1))
            now[dim] = max(1, -(-now[dim] // grain) // 2) * grain
        else:
            dim = max(sides, key=now.__getitem__)
            now[dim] = -(-now[dim] // 2)
        return now

    def name_unit(self, unit: range) -> str:
        """Return what people call some chunks."""
        if len(unit) == 1:
            return f"chunk {unit.start} ({self._slice(unit)})"
        return f"chunks {unit.start} to {unit.stop - 1}"

    def _slice(self, unit: range) -> str:
        return format_ranges(self.grid.block(unit))

    def _explain(self, unit: range) -> str:
        fixed = [dim for dim in self.grid.lengths if dim not in self.cuttable]
        whole = f": {', '.join(map(repr, fixed))} must be whole" if fixed else ""
        return (
            f"{self.name_unit(unit)} of '{self.name}' needs more than the "
            f"{format_bytes(self.budget_bytes)} that a task may use, and nothing of it is left to "
            f"cut{whole}.\nAllow more (memory=), run fewer tasks at once, or let a dimension be "
            f"cut. {format_count(self.n_done, 'chunk')} are done and kept."
        )
