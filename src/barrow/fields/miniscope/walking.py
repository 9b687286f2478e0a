"""Walk over a movie: the one place here that asks barrow to run something."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from barrow import api
from barrow.fields.miniscope.segments import SEGMENT
from barrow.model.plan import Plan
from barrow.model.source import Source
from barrow.running.memory import resident_bytes, trim
from barrow.units import parse_bytes

_IMAGE = ("height", "width")
# A pass over no more than this is over before it could be planned.
_AT_ONCE_BYTES = 2**24
LEAST_SHARE = 0.25
"""Of the memory, for a pass: however much is held."""


@dataclass(frozen=True)
class Walk:
    """How passes over a movie are run."""

    memory: Any = None
    cluster: Any = None
    quiet: bool = False
    chunks: Mapping[str, int] | None = None
    """Frames of a chunk, if somebody wants to say; by default barrow measures."""

    def map(
        self,
        func: Callable[..., Any],
        movie: Source,
        *others: Source,
        name: str,
        to: Path | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return what a function says about every frame, put together."""
        if to is None and self._is_tiny(movie):
            return func(*(source.read(source.everything) for source in (movie, *others)), **kwargs)
        plan = api.plan(
            func, in_segments(movie), *others, to=to, name=name, **self._options(others, kwargs)
        )
        return api.run(self._cut(plan), cluster=self.cluster, quiet=self.quiet).result

    def reduce(
        self,
        func: Callable[..., Any],
        movie: Source,
        *others: Source,
        name: str,
        combine: Callable[[Any, Any], Any] = add,
        **kwargs: Any,
    ) -> Any:
        """Return what a function says about chunks of whole segments, added up."""
        if self._is_tiny(movie):
            return func(*(source.read(source.everything) for source in (movie, *others)), **kwargs)
        plan = api.plan(
            func,
            in_segments(movie),
            *others,
            combine=combine,
            name=name,
            **self._options(others, kwargs),
        )
        return api.run(self._cut(plan), cluster=self.cluster, quiet=self.quiet).result

    def _is_tiny(self, movie: Source) -> bool:
        return movie.nbytes <= _AT_ONCE_BYTES and self.memory is None and self.chunks is None

    def left_bytes(self) -> int | None:
        """Return what a pass may use: the interpreter and traces of all units leave it less."""
        if self.memory is None:
            return None
        trim()  # threads of the last pass leave holes that nobody else can fill
        total = parse_bytes(self.memory)
        return max(int(LEAST_SHARE * total), total - resident_bytes())

    def _options(self, others: tuple[Source, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        whole = {dim for other in others for dim in other.dims} - {"frame"}
        return {
            "whole": tuple({**dict.fromkeys(_IMAGE), **dict.fromkeys(sorted(whole))}),
            "memory": self.left_bytes(),
            "cluster": self.cluster,
            "quiet": self.quiet,
            "kwargs": kwargs,
        }

    def _cut(self, plan: Plan) -> Plan:
        if not self.chunks or "frame" not in self.chunks or "frame" not in plan.cuttable:
            return plan
        frames = -(-self.chunks["frame"] // SEGMENT) * SEGMENT
        return plan.with_chunks(frame=min(frames, plan.lengths["frame"]))


def in_segments(movie: Source) -> Source:
    """Return a movie whose chunks are whole segments of frames."""
    return replace(movie, grain={**movie.grain, "frame": SEGMENT})


def frame_numbers(movie: Source) -> Source:
    """Return the number of each frame, to go beside the movie."""
    return api.open(np.arange(movie.lengths["frame"]), name="number", dims=("frame",))


def beside(values: np.ndarray, *dims: str) -> Source:
    """Return an array as a source that goes beside the movie."""
    return api.open(np.ascontiguousarray(values), name=dims[-1], dims=dims)
