"""Where and how to compute: what all calls on rasters share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barrow import api
from barrow.model.plan import Plan
from barrow.model.source import Source
from barrow.model.step import Step


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

    def map(self, step: Step, *sources: Source, chunks: Mapping[str, int], to: Any = None) -> Any:
        """Return the values of a step on all of its sources, in chunks that were given."""
        plan = self.plan(step, *sources, to=to)
        return api.run(plan.with_chunks(**chunks) if chunks else plan).result

    def reduce(self, func: Any, *sources: Source, **options: Any) -> Any:
        """Return what a function says about all chunks, added up."""
        return api.reduce(func, *sources, **self._how(), **options)

    def _how(self) -> dict[str, Any]:
        return {"memory": self.memory, "cluster": self.cluster, "quiet": self.quiet}


def keep(block: Any) -> Any:
    """Return a block as it was read: for sources that compute what they are read for."""
    return block
