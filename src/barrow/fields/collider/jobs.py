"""A job: a processor, and the files that it is to be applied to."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from barrow.composing import fuse
from barrow.errors import InputError
from barrow.fields.collider.analysis import Analysis, OnError, Span
from barrow.fields.collider.catalogue import Listed, Unlisted, list_contents
from barrow.fields.collider.columns import Schema
from barrow.fields.collider.filesets import list_files
from barrow.fields.collider.loops import EVENTS, Loop, find_loop
from barrow.fields.collider.skips import Skip
from barrow.model.source import Reader, Source
from barrow.model.step import Step
from barrow.running.fingerprint import fingerprint
from barrow.shared import Ranges
from barrow.sources.identity import identify_file, identify_text
from barrow.units import format_count

POLICIES = ("stop", "skip", "skip-file")


@dataclass(frozen=True)
class Settings:
    """How events are read and what happens to those that cannot be."""

    schema: Schema | type = "nanoaod"
    on_error: OnError = "stop"
    chunksize: int | None = None
    maxchunks: int | None = None

    def __post_init__(self) -> None:
        if self.on_error not in POLICIES:
            raise InputError(
                f"on_error={self.on_error!r} is not known: give one of {', '.join(POLICIES)}."
            )
        for name in ("chunksize", "maxchunks"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise InputError(f"{name}={value!r} is not a number of 1 or more.")


@dataclass(frozen=True)
class Job:
    """What is to be done: a processor and files that can be opened."""

    process: Callable[[Any], Any]
    postprocess: Callable[[Any], Any] | None
    name: str
    files: Sequence[Listed]
    missing: tuple[Skip, ...]
    settings: Settings

    @classmethod
    def of(cls, processor: Any, fileset: Any, treename: str, settings: Settings) -> "Job":
        """Return the job, knowing what its files hold; see :func:`barrow.collider.run`."""
        if isinstance(processor, type):
            processor = processor()
        process = getattr(processor, "process", processor)
        if not callable(process):
            raise InputError(
                f"{processor!r} is no processor: give an object with process(events) or a function."
            )
        found = list_contents(list_files(fileset, treename))
        files = [item for item in found if isinstance(item, Listed)]
        lost = [item for item in found if isinstance(item, Unlisted)]
        if lost and settings.on_error == "stop":
            raise _unopened(lost) from lost[0].error
        if not files:
            raise InputError(f"No file of the fileset can be opened. The first: {lost[0].error}.")
        missing = tuple(
            Skip(item.entry.dataset, item.entry.path, 0, None, str(item.error), item.attempts)
            for item in lost
        )
        name = getattr(processor, "__name__", None) or type(processor).__name__
        after = getattr(processor, "postprocess", None)
        return cls(process, after, name, files, missing, settings)

    @property
    def analysis(self) -> Analysis:
        """The task, before it is cut into pieces."""
        chosen = self.settings
        return Analysis(self.process, self.files, schema=chosen.schema, on_error=chosen.on_error)

    def find_loop(self) -> Loop | None:
        """Return where the processor loops over events; None if it does not, or cannot be tried."""
        analysis = replace(self.analysis, on_error="stop")
        number = max(range(len(self.files)), key=lambda number: self.files[number].entries)
        if self.files[number].entries < 2 * EVENTS:
            return None
        with suppress(Exception):  # it has run; if it fails now, nothing is learnt
            return find_loop(lambda events: analysis.do([Span(number, 0, events)]))
        return None

    def finish(self, value: Any) -> Any:
        """Return the output, made of the sum."""
        if self.postprocess is None or value is None:
            return value
        made = self.postprocess(value)
        return value if made is None else made

    def key(self) -> str | None:
        """Return what tells this work from all other: code, files and settings."""
        files = [
            (identify_file(file.entry.place) or file.uuid, file.entry.tree, file.entry.dataset)
            for file in self.files
        ]
        metadata = [sorted(file.entry.metadata.items(), key=str) for file in self.files]
        facts = identify_text(files, metadata, self.settings, self.missing)
        source = Source("events", {"file": len(files)}, np.dtype("i8"), Numbers(facts))
        return fingerprint(fuse(Step(self.process, self.name, combine=_first), [source]))


def _unopened(lost: Sequence[Unlisted]) -> InputError:
    first = lost[0]
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    return InputError(
        f"{first.error}{more}, tried {format_count(first.attempts, 'time')}. Bring it back, or "
        "leave such files out with on_error='skip'."
    )


def _first(one: Any, _: Any) -> Any:
    return one


@dataclass(frozen=True)
class Numbers(Reader):
    """Reads the numbers of pieces: the task knows what they mean."""

    facts: str = ""

    def __call__(self, ranges: Ranges) -> np.ndarray:
        return np.arange(*ranges[0])

    def identity(self) -> str | None:
        return self.facts
