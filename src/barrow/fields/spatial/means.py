"""Where and how to compute: what all calls on rasters share."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from barrow import api
from barrow.model.plan import Plan
from barrow.model.source import Source
from barrow.model.step import Step

# Quick work on so little is over before it could be planned.
AT_ONCE_BYTES = 2**25
# Stored parts of at least so much are worth a task each.
PART_BYTES = 2**22


@dataclass(frozen=True)
class Means:
    """What a run may use. The names are those of :func:`barrow.map`."""

    to: Any = None
    memory: Any = None
    cluster: Any = None
    resources: Mapping[str, float] = field(default_factory=dict)
    quiet: bool = False

    def step(self, func: Any, name: str | None = None, **options: Any) -> Step:
        """Return a function as a step with the resources of this run."""
        return Step(func, name or "", resources=self.resources, **options)

    def plan(self, steps: Any, *sources: Source, **options: Any) -> Plan:
        """Measure and plan."""
        return api.plan(steps, *sources, **self._how(), **options)

    def map(self, func: Any, source: Source, *, name: str, to: Any = None) -> Any:
        """Return the values of a quick function of this package on all of a source.

        If it is stored in parts of some size, they are its chunks: with so little to compute,
        fresh memory for larger ones would take longer than the work.
        """
        if to is None and self._is_little(source):
            return func(source.read(source.everything))
        plan = self.plan(self.step(func, name), source, to=to)
        parts = {d: min(n, plan.chunks[d]) for d, n in source.grain.items() if d in plan.cuttable}
        if prod(parts.values()) * source.dtype.itemsize >= PART_BYTES:
            plan = plan.with_chunks(**parts)
        return api.run(plan).result

    def reduce(self, func: Any, *sources: Source, name: str, whole: Collection[str] = ()) -> Any:
        """Return what a quick function of this package says about all chunks, added up."""
        if self._is_little(*sources):
            return func(*(source.read(source.everything) for source in sources))
        return api.reduce(func, *sources, name=name, whole=whole, **self._how())

    def _is_little(self, *sources: Source) -> bool:
        return self.memory is None and sum(s.nbytes for s in sources) <= AT_ONCE_BYTES

    def _how(self) -> dict[str, Any]:
        return {"memory": self.memory, "cluster": self.cluster, "quiet": self.quiet}


def keep(block: Any) -> Any:
    """Return a block as it was read: for sources that compute what they are read for."""
    return block
