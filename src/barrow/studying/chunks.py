"""How time and memory depend on the size of chunks, with what the plan chose among them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from os import PathLike
from typing import Any

import numpy as np

from barrow import api
from barrow.errors import InputError
from barrow.model.plan import Plan
from barrow.planning.adjusting import layout_of
from barrow.planning.candidates import Candidate, Choice, list_rungs
from barrow.reporting.figure import BYTES, SECONDS, Figure
from barrow.reporting.figure_of_curves import Line, Sheet, draw_curves
from barrow.reporting.study import Shown, Study
from barrow.sites.asked import check_count
from barrow.studying.measuring import keeping
from barrow.studying.repeat import Repeat, Repeats
from barrow.studying.workloads import read_run
from barrow.units import format_bytes, format_seconds

FORMAT = 1
"""Version of its JSON."""
MOST_CHUNKS = 20_000
"""Smaller chunks than that are not tried: nobody wants to wait for what they show."""
MOST_TIMES = 10.0
"""Nor those that should take so many times as long as what the plan chose."""


@dataclass(frozen=True)
class Size:
    """One size of chunks, and what the run took with it."""

    chunk: Mapping[str, int]
    chunks: int
    """How many there are."""
    chunk_bytes: int
    """Of one: of what its task reads."""
    taken: Repeats
    task_bytes: int
    """Most that a task held."""
    predicted_seconds: float
    predicted_bytes: int
    """For one task."""
    is_planned: bool
    """Whether that is what the plan chose."""


@dataclass(frozen=True)
class ChunkStudy(Shown):
    """What :func:`barrow.chunk_study` has measured; print it, or save it."""

    name: str
    sizes: tuple[Size, ...]
    left_out: tuple[str, ...] = ()
    """Sizes that were not tried, in sentences."""

    @property
    def planned(self) -> Size:
        """What the plan chose."""
        return next(size for size in self.sizes if size.is_planned)

    @property
    def best(self) -> Size:
        """The fastest of all."""
        return min(self.sizes, key=lambda size: size.taken.seconds)

    @property
    def regret(self) -> float:
        """How much longer the plan's choice took than the fastest, as a share.

        Examples
        --------
        >>> import barrow, numpy as np
        >>> study = barrow.chunk_study(np.sqrt, np.ones((64, 64)), points=2, quiet=True)
        >>> study.regret >= 0
        True
        """
        return self.planned.taken.seconds / max(1e-9, self.best.taken.seconds) - 1

    def to_json(self) -> str:
        """Return all numbers as JSON text."""
        return json.dumps(
            {"barrow_chunk_study": FORMAT, **asdict(self), "regret": self.regret}, indent=2
        )

    def study(self) -> Study:
        """Return what is shown: a sentence, a table and two figures."""
        planned, best = self.planned, self.best
        said = f"The plan chose chunks of {_lengths(planned.chunk)}: "
        said += f"{format_seconds(planned.taken.seconds)}, "
        said += (
            "the fastest of all that were tried."
            if best is planned
            else f"{self.regret:.0%} more than the fastest, {_lengths(best.chunk)}."
        )
        return Study(
            title=f"Chunks of '{self.name}'",
            headline=said,
            head=("chunk", "size", "chunks", "time", "predicted", "task", "predicted", "together"),
            rows=tuple(_list_cells(size) for size in self.sizes),
            notes=self.left_out,
            figures=(self._draw("time"), self._draw("memory")),
        )

    def _draw(self, what: str) -> Figure:
        sizes, is_time = self.sizes, what == "time"
        measured = [s.taken.seconds if is_time else float(s.task_bytes) for s in sizes]
        predicted = [s.predicted_seconds if is_time else float(s.predicted_bytes) for s in sizes]
        x = [float(size.chunk_bytes) for size in sizes]
        says = [
            f"{_lengths(size.chunk)}: {format_seconds(size.taken.seconds)}, "
            f"{format_bytes(size.task_bytes)} for a task"
            for size in sizes
        ]
        low = [size.taken.least_seconds for size in sizes] if is_time else []
        high = [size.taken.most_seconds for size in sizes] if is_time else []
        at = sizes.index(self.planned)
        lines = [
            Line("predicted", x, predicted, "muted", dash="dashed", marker=""),
            Line("measured", x, measured, "c0", low=low, high=high, says=says),
            Line("what the plan chose", [x[at]], [measured[at]], "c1", marker="diamond"),
        ]
        sheet = Sheet(
            what,
            f"{'Time of the run' if is_time else 'Peak memory of a task'} for each size of chunks",
            "Measured, and what the plan had predicted. "
            + ("Small chunks cost calls, large ones leave workers idle." if is_time else ""),
            "size of a chunk",
            what,
            SECONDS if is_time else BYTES,
            format_seconds if is_time else format_bytes,
            ticks=[(value, format_bytes(value)) for value in x],
        )
        return draw_curves(sheet, lines)


def chunk_study(
    func: Any,
    *sources: Any,
    points: int = 7,
    repeats: int = 1,
    folder: str | PathLike[str] | None = None,
    quiet: bool = False,
    **options: Any,
) -> ChunkStudy:
    """Measure time and memory for several sizes of chunks, and mark what the plan chose.

    The function is planned as :func:`barrow.map` would, then run with smaller and larger chunks
    of the same ladder from which the plan has chosen. Sizes that do not fit the memory, or are
    hopeless by prediction, are left out.

    Parameters
    ----------
    func, sources
        As for :func:`barrow.map`, or one step; results are thrown away.
    points
        How many sizes to try at most, that of the plan included.
    repeats
        How often each is measured.
    folder
        Where to keep the record of every run; by default none is kept.
    quiet
        Show no progress.
    options
        All else that :func:`barrow.plan` takes: ``whole``, ``halo``, ``memory``, ``cluster``,
        ``combine`` and so on.

    Returns
    -------
    ChunkStudy
        Print it for a table; ``save("chunks.html")`` writes a page with its figures.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> study = barrow.chunk_study(np.sqrt, np.ones((64, 64)), points=3, quiet=True)
    >>> len(study.sizes), study.planned.chunk
    (3, {'dim_0': 64, 'dim_1': 64})
    """
    check_count("points", points)
    check_count("repeats", repeats)
    plan = api.plan(func, *sources, quiet=quiet, **options)
    if plan.before:
        raise InputError(
            f"'{plan.name}' runs in {len(plan.stages)} stages, each with chunks of its own: study "
            "one step at a time."
        )
    chosen, left_out = choose_sizes(plan, points)
    measured = []
    with keeping(folder) as place:
        for number, candidate in enumerate(chosen):
            taken, peak = [], 0
            for turn in range(1, repeats + 1):
                ready = plan.with_chunks(**candidate.chunk)
                ready = replace(ready, options={**ready.options, "to": None, "resume": False})
                run = api.run(ready, folder=place / f"{number}-{turn}", quiet=quiet)
                taken.append(replace(read_run(run.folder), seconds=run.metrics["wall_seconds"]))
                peak = max(peak, int(run.metrics["peak_task_bytes"]))
            measured.append(_describe(plan, candidate, taken, peak))
    return ChunkStudy(plan.name, tuple(measured), tuple(left_out))


def choose_sizes(plan: Plan, points: int) -> tuple[list[Candidate], list[str]]:
    """Return sizes of chunks around that of a plan, the smallest first, and what is missing."""
    assert plan.target is not None
    choice, layout = Choice(plan.target, plan.cost, plan.result), layout_of(plan)
    own = dict(plan.grid.chunk)
    rungs = [rung for rung in list_rungs(plan.target) if rung != own]
    tried = [choice.predict(layout, rung) for rung in rungs]
    planned = choice.predict(layout, own, dict(plan.strides))
    fitting = [candidate for candidate in tried if candidate.peak_bound <= plan.budget_bytes]
    left_out = []
    if len(fitting) < len(tried):
        left_out.append(
            f"Larger chunks do not fit: a task may use {format_bytes(plan.budget_bytes)}."
        )
    worth = [c for c in fitting if c.n_chunks <= max(MOST_CHUNKS, 2 * planned.n_chunks)]
    if plan.cost.is_measured:
        worth = [c for c in worth if c.seconds <= MOST_TIMES * planned.seconds]
    if len(worth) < len(fitting):
        left_out.append("Smaller chunks than these would take too long to be tried.")
    found = sorted([*_spread_out(worth, points - 1), planned], key=lambda c: prod(c.chunk.values()))
    return found, left_out


def _spread_out(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Return some of many, evenly, the first and the last among them."""
    if len(candidates) <= most:
        return list(candidates)
    places = np.unique(np.linspace(0, len(candidates) - 1, most).round().astype(int))
    return [candidates[place] for place in places]


def _describe(plan: Plan, candidate: Candidate, taken: Sequence[Repeat], peak: int) -> Size:
    itemsize = max((np.dtype(read).itemsize for read in plan.reads), default=8)
    return Size(
        chunk=candidate.chunk,
        chunks=candidate.n_chunks,
        chunk_bytes=candidate.items * itemsize,
        taken=Repeats(tuple(taken)),
        task_bytes=peak,
        predicted_seconds=candidate.seconds if plan.cost.is_measured else 0.0,
        predicted_bytes=int(candidate.peak_bytes),
        is_planned=candidate.chunk == dict(plan.grid.chunk),
    )


def _list_cells(size: Size) -> tuple[str, ...]:
    predicted = format_seconds(size.predicted_seconds) if size.predicted_seconds else "-"
    return (
        f"{_lengths(size.chunk)}{' *' if size.is_planned else ''}",
        format_bytes(size.chunk_bytes),
        f"{size.chunks:,}",
        format_seconds(size.taken.seconds),
        predicted,
        format_bytes(size.task_bytes),
        format_bytes(size.predicted_bytes),
        format_bytes(size.taken.total_bytes),
    )


def _lengths(chunk: Mapping[str, int]) -> str:
    return " × ".join(f"{dim} {length}" for dim, length in chunk.items()) or "everything"
