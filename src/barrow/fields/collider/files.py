"""A file of events, whatever its format: its columns, where it can be cut, and reading.

What reading took, and how much came, is noted by the file.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from barrow.fields.collider.columns import Column, Fields, Schema


class FaultError(OSError):
    """Data that cannot be read: a file, or a column of it."""


class Values(NamedTuple):
    """What was read of a column."""

    values: np.ndarray
    offsets: np.ndarray | None
    """Where the values of each event begin; None where each has one."""


@dataclass
class Effort:
    """What reading took; sums."""

    open_seconds: float = 0.0
    read_seconds: float = 0.0
    """Without decompressing, where that is known by itself."""
    decompress_seconds: float = 0.0
    read_bytes: int = 0
    """As they are stored."""
    value_bytes: int = 0
    """In memory."""


class EventFile(ABC):
    """One open file."""

    def __init__(self, path: str, tree: str) -> None:
        self.path = path
        self.tree = tree
        self.effort = Effort()
        self._fields: dict[Schema, Fields] = {}

    @property
    @abstractmethod
    def entries(self) -> int:
        """How many events there are."""

    @property
    @abstractmethod
    def edges(self) -> np.ndarray:
        """Where the storage can be cut: 0, the first event of each further cluster, the end."""

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, Column]:
        """All columns that can be read."""

    def fields(self, schema: Schema) -> Fields:
        """Return the fields that events have, made of the columns."""
        if schema not in self._fields:
            self._fields[schema] = Fields(self.columns, schema)
        return self._fields[schema]

    @property
    def uuid(self) -> str:
        """What tells the file from all others; "" if it does not say."""
        return ""

    @abstractmethod
    def _fetch(self, names: Collection[str], start: int, stop: int) -> dict[str, Values]:
        """Return columns of some events."""

    def close(self) -> None:
        """Let go of the file."""
        return

    def read(self, names: Collection[str], start: int, stop: int) -> dict[str, Values]:
        """Return columns of some events, and note what it took."""
        began, decompressed = time.perf_counter(), self.effort.decompress_seconds
        try:
            found = self._fetch(names, start, stop)
        except (MemoryError, FaultError):
            raise
        except Exception as error:
            raise self.fault(names, start, stop, error) from error
        for name, column in found.items():
            self._check(name, column, stop - start)
        effort = self.effort
        spent = time.perf_counter() - began
        effort.read_seconds += spent - (effort.decompress_seconds - decompressed)
        effort.value_bytes += sum(column.values.nbytes for column in found.values())
        return found

    def fault(
        self, names: Collection[str], start: int, stop: int, error: Exception
    ) -> "FaultError":
        """Return what is said about columns that cannot be read."""
        # Any library beneath may stumble over broken bytes in its own way.
        shown = ", ".join(sorted(names)[:3]) + (" …" if len(names) > 3 else "")
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return FaultError(
            f"{self.path}: {shown} of events {start} to {stop} cannot be read: {reason}"
        )

    def _check(self, name: str, column: Values, length: int) -> None:
        found = len(column.values) if column.offsets is None else len(column.offsets) - 1
        if found != length:
            raise FaultError(
                f"{self.path}: {name} has {found} events where {length} were asked for"
            )


def as_edges(firsts: Iterable[Any], entries: int) -> np.ndarray:
    """Return where a file can be cut, given the first events of its clusters.

    Examples
    --------
    >>> as_edges([0, 100, 200], 250).tolist()
    [0, 100, 200, 250]
    """
    return np.unique([0, *(int(first) for first in firsts if first < entries), entries])


def split_array(array: Any) -> Values:
    """Return an array of either library as flat values and where each event begins."""
    if isinstance(array, np.ndarray):
        return Values(array, None)
    import awkward as ak

    layout = ak.to_packed(array).layout
    if layout.is_list:
        layout = layout.to_ListOffsetArray64(True)
        return Values(np.asarray(layout.content.data), np.asarray(layout.offsets.data))
    return Values(np.asarray(layout.data), None)
