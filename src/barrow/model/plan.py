"""A plan: chunks, workers, predictions and reasons, made before a run."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from barrow.errors import InputError
from barrow.model.cost import Cost
from barrow.model.grid import Grid
from barrow.model.plan_fields import check_fields
from barrow.model.plan_text import Row, format_html, format_text, list_rows
from barrow.model.source import Source
from barrow.units import format_bytes

FORMAT = 3
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
    reads: tuple[str, ...] = ()
    """The dtype of each source."""
    at_once: int = 0
    """Tasks that run at once, where workers differ; 0 for one in each thread."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """What a task needs to itself while it runs."""
    before: tuple["Plan", ...] = ()
    """Stages that run first: each keeps its result for the next, the last one for this plan."""
    measured: Mapping[str, float] = field(default_factory=dict, compare=False)
    """What the run took, beside what was predicted; empty before it."""
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
        return self.at_once or max(1, self.workers * self.threads)

    @property
    def stages(self) -> tuple["Plan", ...]:
        """All that runs, in order: the stages before, and this plan itself."""
        return (*self.before, self)

    @property
    def total_seconds(self) -> float:
        """Predicted for all stages together."""
        return sum(stage.seconds for stage in self.stages)

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
        return json.dumps({"barrow_plan": FORMAT, **self._fields()}, indent=2)

    def _fields(self) -> dict[str, Any]:
        saved = {f.name: getattr(self, f.name) for f in fields(self)}
        del saved["target"], saved["options"], saved["cost_key"]
        saved["cost"] = self.cost.to_dict()
        saved["before"] = [stage._fields() for stage in self.before]
        return saved

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan as JSON."""
        Path(path).write_text(self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Plan":
        """Read a plan that was saved, to look at it or to use it again.

        Function and data are not in the file: give it to :func:`barrow.plan` with
        them, as ``like``.
        """
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise InputError(f"{str(path)!r} cannot be read as a plan: {why}.") from None
        return cls.from_json(text, where=str(path))

    @classmethod
    def from_json(cls, text: str, *, where: str = "The plan") -> "Plan":
        """Return a plan from the text of :meth:`to_json`; ``where`` is for messages."""
        try:
            saved = json.loads(text)
            version = saved.pop("barrow_plan")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{where} is not a plan that barrow saved: {error!r}.") from None
        if version != FORMAT:
            raise InputError(f"{where} was saved in format {version}; this barrow reads {FORMAT}.")
        return cls._from_fields(saved, where)

    @classmethod
    def _from_fields(cls, saved: Any, where: str) -> "Plan":
        if not isinstance(saved, dict):
            raise InputError(f"{where} is not a plan that barrow saved: it is {saved!r}.")
        needed = {
            f.name: f.default is MISSING and f.default_factory is MISSING
            for f in fields(cls)
            if f.name not in ("target", "options")
        }
        check_fields(saved, {**needed, "cost": True}, where)
        for name in ("steps", "cuttable", "reasons", "reads"):
            saved[name] = tuple(saved.get(name, ()))
        saved["before"] = tuple(
            cls._from_fields(stage, f"{where}: before[{number}]")
            for number, stage in enumerate(saved.get("before", ()))
        )
        try:
            saved["cost"] = Cost.from_dict(saved["cost"])
        except (ValueError, TypeError, AttributeError) as error:
            raise InputError(f"{where}: cost is not what barrow saved: {error}.") from None
        return cls(**saved)

    def rows(self) -> list[Row]:
        """Return what to show a person: a heading, a text, and what was measured of it."""
        return list_rows(self)

    def __str__(self) -> str:
        return format_text(self)

    def _repr_html_(self) -> str:
        return format_html(self)


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
