"""A plan: chunks, workers, predictions and reasons, made before a run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from barrow.errors import InputError
from barrow.model.cost import Cost
from barrow.model.grid import Grid
from barrow.model.source import Source
from barrow.units import format_bytes, format_count, format_seconds

FORMAT = 2
"""Version of a saved plan."""

Engine = Literal["inline", "threads", "processes", "dask"]
Place = Literal["memory", "store", "value"]


@dataclass(frozen=True)
class Plan:
    """What will run, where, in which chunks, with which predictions, and why.

    Plain data: it can be printed, saved, read back, edited with
    :func:`dataclasses.replace` and run with :func:`barrow.run`.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> plan = barrow.plan(np.sqrt, np.ones((6, 8)))
    >>> plan.chunks, plan.n_chunks
    ({'dim_0': 6, 'dim_1': 8}, 1)
    """

    name: str
    steps: tuple[str, ...]
    source: str
    """What is read, in words."""
    lengths: Mapping[str, int]
    """Dimensions of what is cut: the result of a map, the source of a reduction."""
    cuttable: tuple[str, ...]
    chunks: Mapping[str, int]
    strides: Mapping[str, int]
    """Blocks in which a task walks its chunk; empty when it takes it all at once."""
    stored_chunks: Mapping[str, int]
    """Storage chunks of the result; empty when it stays in memory."""
    result: Place
    dtype: str
    """Of the result; empty for a reduction."""
    engine: Engine
    workers: int
    threads: int
    """Of each worker."""
    is_local: bool
    """Whether all tasks run on this machine and can share its memory."""
    cores: int
    """Of the machine for which the plan was made."""
    available_bytes: int = field(compare=False)
    """Memory that was free there."""
    memory_bytes: int
    """All that this run may use, result included."""
    budget_bytes: int
    """What one task may use."""
    items: int
    """Elements that one task reads, halo included."""
    peak_bytes: int
    """Predicted for one task."""
    peak_bound_bytes: int
    """What it should never exceed: this is what must fit the budget."""
    task_seconds: float
    """Predicted for one task, with all others running."""
    seconds: float
    """Predicted for the run; 0 when it was too short to measure."""
    reasons: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost, compare=False)
    """What was measured; all predictions follow from it."""
    target: Source | None = field(default=None, compare=False, repr=False)
    """The chain of steps itself; not saved. Without it a plan can only be looked at."""
    options: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Where to and how the caller wants it run; not saved."""
    cost_key: str | None = field(default=None, compare=False, repr=False)
    """Under which the cost is remembered; not saved."""

    @property
    def grid(self) -> Grid:
        """How the data are cut."""
        return Grid(self.lengths, self.chunks)

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return len(self.grid)

    @property
    def slots(self) -> int:
        """Tasks that run at once."""
        return max(1, self.workers * self.threads)

    @property
    def result_bytes(self) -> int:
        """Size of the result, uncompressed; 0 for a reduction."""
        return prod(self.lengths.values()) * np.dtype(self.dtype).itemsize if self.dtype else 0

    def with_chunks(self, **chunks: int) -> "Plan":
        """Return the plan with other chunks; what is set by hand stays so during the run.

        Examples
        --------
        >>> import barrow, numpy as np
        >>> plan = barrow.plan(np.sqrt, np.ones((6, 8)))
        >>> plan.with_chunks(dim_0=2).n_chunks
        3
        """
        for dim in chunks:
            if dim not in self.cuttable and chunks[dim] != self.lengths.get(dim):
                raise InputError(
                    f"'{dim}' cannot be cut: '{self.name}' can be cut along "
                    f"{', '.join(map(repr, self.cuttable)) or 'nothing'}."
                )
        changed = replace(
            self,
            chunks={**self.chunks, **chunks},
            strides={},
            stored_chunks={},
            options={**self.options, "may_resize": False},
        )
        return replace(changed, chunks=changed.grid.chunk)

    def to_json(self) -> str:
        """Return the plan as JSON text, without the function and the data."""
        saved = {f.name: getattr(self, f.name) for f in fields(self)}
        del saved["target"], saved["options"], saved["cost_key"]
        saved["cost"] = self.cost.to_dict()
        return json.dumps({"barrow_plan": FORMAT, **saved}, indent=2)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan as JSON."""
        Path(path).write_text(self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Plan":
        """Read a plan that was saved, to look at it: function and data are not in the file."""
        try:
            saved = json.loads(Path(path).read_text())
            version = saved.pop("barrow_plan")
            for name in ("steps", "cuttable", "reasons"):
                saved[name] = tuple(saved[name])
            saved["cost"] = Cost.from_dict(saved["cost"])
            plan = cls(**saved)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path} is not a plan that barrow saved: {error!r}.") from None
        if version != FORMAT:
            raise InputError(f"{path} was saved in format {version}; this barrow reads {FORMAT}.")
        return plan

    def rows(self) -> list[tuple[str, str]]:
        """Return what to show a person: pairs of a heading and a text."""
        chunk = " × ".join(f"{dim} {size}" for dim, size in self.grid.chunk.items()) or "everything"
        rows = [
            ("step", " → ".join(self.steps)),
            ("source", self.source),
            ("chunks", f"{self.n_chunks:,} of {chunk}"),
            ("runs", self._where()),
        ]
        if self.result != "value":
            size = format_bytes(self.result_bytes)
            rows.append(("result", f"{np.dtype(self.dtype)}, {size}, {self._place()}"))
        if self.seconds:
            rows.append(("time", f"about {format_seconds(self.seconds)}"))
        share = self.peak_bound_bytes / max(1, self.budget_bytes)
        rows.append(
            (
                "peak",
                f"about {format_bytes(self.peak_bytes)} for one task, at most "
                f"{format_bytes(self.peak_bound_bytes)}: {share:.1%} of the "
                f"{format_bytes(self.budget_bytes)} it may use",
            )
        )
        rows += [("why" if not index else "", reason) for index, reason in enumerate(self.reasons)]
        return rows

    def _where(self) -> str:
        if self.engine == "inline":
            return "in this process, one chunk after the other"
        if self.engine == "threads":
            return f"in this process, {format_count(self.threads, 'thread')}"
        kind = "local worker" if self.engine == "processes" else "Dask worker"
        return f"on {format_count(self.workers, kind)} with {format_count(self.threads, 'thread')}"

    def _place(self) -> str:
        if self.result == "memory":
            return "in memory"
        stored = " × ".join(map(str, self.stored_chunks.values()))
        return f"in a Zarr store, chunks of {stored}"

    def __str__(self) -> str:
        width = max(len(heading) for heading, _ in self.rows())
        lines = [f"{heading:<{width}}  {text}" for heading, text in self.rows()]
        return "\n".join([f"Plan for '{self.name}'", *lines])

    def _repr_html_(self) -> str:
        from html import escape

        body = "".join(
            f"<tr><th style='text-align:left'>{escape(heading)}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for heading, text in self.rows()
        )
        return f"<table><caption>Plan for '{escape(self.name)}'</caption>{body}</table>"


def describe_source(source: Source) -> str:
    """Return a source in one line.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> describe_source(barrow.open(np.zeros((3, 4)), dims=("y", "x")))
    "'array': float64, y 3 × x 4, 96 B"
    """
    lengths = " × ".join(f"{dim} {length}" for dim, length in source.lengths.items())
    size = format_bytes(source.nbytes)
    return f"'{source.name}': {source.dtype}, {lengths or 'a single value'}, {size}"
