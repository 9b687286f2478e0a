"""What a report is made from: the tables of a record, however they are kept."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

Columns = Mapping[str, list[Any]]
"""The columns of one table, all of the same length."""


class Tables(Protocol):
    """A record, as far as a report needs it."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is known of the run as a whole."""

    def columns(self, name: str) -> Columns:
        """Return one table, column by column."""


class Once:
    """The tables of a record, each read once."""

    def __init__(self, record: Tables) -> None:
        self._record = record
        self._read: dict[str, Columns] = {}

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is known of the run as a whole."""
        return self._record.facts

    def columns(self, name: str) -> Columns:
        """Return one table, column by column."""
        if name not in self._read:
            self._read[name] = self._record.columns(name)
        return self._read[name]


def numbers(values: list[Any]) -> np.ndarray:
    """Return a column as numbers; what was not measured is NaN.

    Examples
    --------
    >>> numbers([1, None, 2.5])
    array([1. , nan, 2.5])
    """
    return np.array([np.nan if value is None else value for value in values], float)
