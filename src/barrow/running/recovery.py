"""Decide what to do with chunks that failed.

A chunk that did not fit is split, and split again, until it fits, nothing is left to
cut, or it is plain that it asks for as much however small it is. A chunk whose worker was
lost is done again; if workers keep dying with it, it runs alone, and only then is it to
blame: it is split as if it had not fitted. Numbers in, batches out: nothing runs here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from barrow.errors import BudgetError, ClusterError
from barrow.model.grid import Grid, format_ranges
from barrow.running.backlog import Backlog, Batch
from barrow.running.fence import FOREIGN_HEADROOM_BYTES
from barrow.units import format_bytes, format_count

# So many workers may be lost with a chunk, among others, before it has to run alone.
MOST_LOSSES = 1
# Alone, so many before it is split; if it cannot be, some more: perhaps somebody else did it.
MOST_LOSSES_ALONE = 1
MOST_LOSSES_AT_ALL = 6
# How many halvings follow each further death alone. A death costs a second, so it is not
# cut in two each time; and a part of this size still kills for some other reason.
HALVINGS_FOR_LOSSES = (1, 2, 3)
# A chunk that asks for as much after so many halvings always will ...
HALVINGS_WITHOUT_EFFECT = 2
# ... and as much is, since sizes are rounded where they are told:
AS_MUCH = 0.9
# If more of the chunks than this did not fit, the rest is split before it is tried.
MUCH_SPLIT = 0.2


@dataclass
class Recovery:
    """Follows the failures of one run.

    Parameters
    ----------
    grain
        Storage chunk along each dimension: parts are whole ones as long as possible.
    whole_bytes
        What a chunk may use that runs alone.
    """

    name: str
    grid: Grid
    cuttable: Collection[str]
    grain: Mapping[str, int]
    budget_bytes: int
    whole_bytes: int = 0
    n_split: int = field(default=0, init=False)
    n_lost: int = field(default=0, init=False)
    n_done: int = field(default=0, init=False)
    _asked: dict[int, list[int]] = field(default_factory=dict, init=False)
    """By chunk: what was asked for, each time it did not fit."""
    _killed: dict[int, int] = field(default_factory=dict, init=False)
    """By chunk: how many times it was split because workers died with it."""

    def on_memory(self, batch: Batch, backlog: Backlog, asked_bytes: int = 0) -> str:
        """Put back, in smaller parts, a batch whose first unit did not fit; say it in words.

        Parameters
        ----------
        asked_bytes
            The size of the allocation that was refused; 0 if it is not known.
        """
        unit = batch.units[0]
        if len(unit) > 1:
            # Several chunks in one call were too much: one at a time, as planned.
            backlog.cut(1)
            self.take_apart(batch, backlog)
            return f"{self.name_unit(unit)} did not fit together: they are done one by one."
        asked = self._asked.setdefault(unit.start, [])
        asked.append(asked_bytes)
        if self._is_hopeless(asked, unit, batch.parts):
            raise BudgetError(self._explain(unit, asked_bytes, is_constant=True))
        parts = self.halve(unit, batch.parts or batch.strides or {})
        if parts is None and batch.budget_bytes < self.whole_bytes > self.budget_bytes:
            self.drop_first(batch, backlog)
            backlog.put_back(
                replace(
                    batch,
                    units=[unit],
                    attempts=batch.attempts + 1,
                    is_alone=True,
                    budget_bytes=self.whole_bytes,
                )
            )
            return (
                f"{self.name_unit(unit)} needed more than {format_bytes(self.budget_bytes)} and "
                f"cannot be split: it runs alone, with {format_bytes(self.whole_bytes)}."
            )
        if parts is None:
            raise BudgetError(self._explain(unit, asked_bytes))
        self.drop_first(batch, backlog)
        self.n_split += 1
        attempts = batch.attempts + 1
        backlog.put_back(replace(batch, units=[unit], strides={}, parts=parts, attempts=attempts))
        size = _format_size(parts)
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
        parts = self._cut_down(unit, batch.parts or batch.strides or {})
        most = MOST_LOSSES + MOST_LOSSES_ALONE
        if parts is None and unit.start not in self._killed:
            most = MOST_LOSSES_AT_ALL
        if not batch.is_alone or losses <= most:
            backlog.put_back(replace(batch, is_alone=True))
            return f"{losses} workers were lost with {name}: it runs alone now."
        if parts is None:
            raise ClusterError(self._explain_deaths(unit, batch))
        self.n_split += 1
        self._killed[unit.start] = self._killed.get(unit.start, 0) + 1
        # Of the last ones it was the cause, so it is split at once if it does it again.
        losses = MOST_LOSSES + MOST_LOSSES_ALONE
        again = replace(batch, strides={}, parts=parts, losses=losses, is_alone=True)
        backlog.put_back(again, is_next=True)
        size = _format_size(parts)
        return f"Workers were lost with {name}, even alone: it is split into parts of {size}."

    def on_done(self, batch: Batch, n_cells: int, backlog: Backlog) -> str | None:
        """Learn from what went well; say so if the rest is split from here on."""
        self.n_done += n_cells
        n_too_large = len(self._asked.keys() | self._killed.keys())
        is_common = n_too_large >= 2 and n_too_large > MUCH_SPLIT * self.n_done
        if not batch.parts or not is_common or backlog.parts == batch.parts:
            return None
        backlog.split(batch.parts)
        count = format_count(n_too_large, "chunk")
        return f"{count} did not fit: the rest is split into {_format_size(batch.parts)}."

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

    def _cut_down(self, unit: range, parts: Mapping[str, int]) -> dict[str, int] | None:
        """Return much smaller parts for a chunk with which workers die; None if there are none."""
        times = self._killed.get(unit.start, 0)
        if times == len(HALVINGS_FOR_LOSSES):
            return None
        found = None
        for _ in range(HALVINGS_FOR_LOSSES[times]):
            smaller = self.halve(unit, found or parts)
            if smaller is None:
                break
            found = smaller
        return found

    def _is_hopeless(self, asked: list[int], unit: range, parts: Mapping[str, int]) -> bool:
        """Return whether a chunk asks for more than is there, however small it is cut."""
        recent = asked[-1 - HALVINGS_WITHOUT_EFFECT :]
        lengths = {
            dim: stop - start
            for dim, (start, stop) in zip(self.grid.lengths, self.grid.block(unit), strict=True)
        }
        # What it asks for may depend on any one of the dimensions.
        is_cut_everywhere = all(
            lengths[dim] == 1 or parts.get(dim, lengths[dim]) < lengths[dim]
            for dim in self.cuttable
        )
        return (
            is_cut_everywhere
            and len(recent) > HALVINGS_WITHOUT_EFFECT
            and recent[-1] > self.budget_bytes + FOREIGN_HEADROOM_BYTES
            and recent[-1] >= AS_MUCH * recent[0]
        )

    def name_unit(self, unit: range) -> str:
        """Return what people call some chunks."""
        if len(unit) == 1:
            return f"chunk {unit.start} ({self._slice(unit)})"
        return f"chunks {unit.start} to {unit.stop - 1}"

    def _slice(self, unit: range) -> str:
        return format_ranges(self.grid.block(unit))

    def _explain(self, unit: range, asked_bytes: int, *, is_constant: bool = False) -> str:
        fixed = [dim for dim in self.grid.lengths if dim not in self.cuttable]
        whole = f": {', '.join(map(repr, fixed))} must be whole" if fixed else ""
        asked = f" (it asked for {format_bytes(asked_bytes)} at once)" if asked_bytes else ""
        why = f"and nothing of it is left to cut{whole}"
        if is_constant:
            why = "and as much however small it is cut"
        return (
            f"{self.name_unit(unit)} of '{self.name}' needs more than the "
            f"{format_bytes(self.budget_bytes)} that a task may use{asked}, {why}.\n"
            "Allow more (memory=), run fewer tasks at once, or let a dimension be cut. "
            f"{format_count(self.n_done, 'chunk')} are done and kept."
        )

    def _explain_deaths(self, unit: range, batch: Batch) -> str:
        deaths = batch.losses + self._killed.get(unit.start, 0)
        size = f"in parts of {_format_size(batch.parts)} as well" if batch.parts else "as a whole"
        return (
            f"{format_count(deaths, 'worker')} died while they had {self.name_unit(unit)} of "
            f"'{self.name}', the last ones with nothing else to do, {size}, and it is not made "
            "smaller any more. Either it needs more memory than a worker has, or its function ends "
            f"the process. Try it alone: {self._slice(unit)}"
        )


def _format_size(parts: Mapping[str, int]) -> str:
    return " × ".join(f"{dim} {n}" for dim, n in parts.items())
