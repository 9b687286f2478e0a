"""Who took part in a run: names, limits and ends of its processes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from barrow.reporting.tables import Columns, Tables

# What a process says when it goes because it is no longer needed.
_QUIET_ENDS = ("", "closed", "done", "finished", "retired", "scaled down", "shut down")


@dataclass(frozen=True)
class Processes:
    """The processes of a record, by their name in it."""

    rows: Columns
    events: Columns

    @classmethod
    def of(cls, record: Tables) -> "Processes":
        """Return those that a record knows."""
        return cls(record.columns("process"), record.columns("event"))

    @cached_property
    def limits(self) -> Mapping[str, float]:
        """Most bytes that each may hold, where there is a limit."""
        pairs = zip(self.rows["name"], self.rows["limit_bytes"], strict=True)
        return {name: float(limit) for name, limit in pairs if limit}

    @cached_property
    def workers(self) -> int:
        """How many of them did the work."""
        return sum(kind == "worker" for kind in self.rows["kind"])

    @cached_property
    def deaths(self) -> list[tuple[str, float, str]]:
        """Name, moment and reason of workers that did not go in peace."""
        return [
            (name, left, reason)
            for name, kind, left, reason in zip(
                *(self.rows[column] for column in ("name", "kind", "left", "reason")), strict=True
            )
            if kind == "worker"
            and left
            and name not in self._sent_away
            and not _is_quiet(reason or "")
        ]

    @cached_property
    def _sent_away(self) -> set[str]:
        """Processes that were told to go: what ends them after that is no loss."""
        pairs = zip(self.events["kind"], self.events["details"], strict=True)
        return {self.named_in(details) for kind, details in pairs if kind == "left"}

    @cached_property
    def _names(self) -> dict[str, str]:
        """Other words for a process: its number, its address, what Dask calls it."""
        found: dict[str, str] = {}
        for column in ("label", "address", "pid"):
            for name, other in zip(self.rows["name"], self.rows[column], strict=True):
                if other is not None:
                    found[str(other)] = name
        return {**found, **{name: name for name in self.rows["name"]}}

    @cached_property
    def _labels(self) -> dict[str, str]:
        return {
            name: _call(kind, str(pid if label is None else label))
            for name, kind, label, pid in zip(
                *(self.rows[column] for column in ("name", "kind", "label", "pid")), strict=True
            )
        }

    def find(self, word: str) -> str:
        """Return the name of a process that is known by another word."""
        return self._names.get(word, word)

    def label(self, name: str) -> str:
        """Return what to call a process in a figure."""
        name = self.find(name)
        return self._labels.get(name, f"process {name}" if name.isdigit() else name)

    def named_in(self, details: Any) -> str:
        """Return the name of the process that an event speaks of, if it names one."""
        try:
            details = json.loads(details)
            word = details.get("process") or details.get("worker") or ""
        except (TypeError, ValueError, AttributeError):
            return ""
        word = str(word)
        return self._names.get(word) or self._names.get(word.partition("/")[0]) or word


def _call(kind: str, label: str) -> str:
    return label if kind in label else f"{kind} {label}"


def _is_quiet(reason: str) -> bool:
    return reason.strip().lower() in _QUIET_ENDS
