"""Accumulators under the names that coffea gives them, for processors that use these.

Plain dictionaries, lists, sets, numbers and histograms add up as well, see
:mod:`barrow.fields.collider.accumulating`.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Set
from typing import Any, Self

import awkward as ak
import numpy as np

from barrow.fields.collider.accumulating import accumulate


class AccumulatorABC(ABC):
    """Something that can be added to others of its kind."""

    @abstractmethod
    def identity(self) -> Any:
        """Return one that changes nothing when it is added."""

    @abstractmethod
    def add(self, other: Any) -> None:
        """Add another to this one."""

    def __add__(self, other: Any) -> Any:
        total = self.identity()
        total.add(self)
        total.add(other)
        return total

    def __iadd__(self, other: Any) -> Self:
        self.add(other)
        return self


class value_accumulator(AccumulatorABC):  # noqa: N801 - the names are coffea's
    """A value that starts as ``default_factory()``."""

    def __init__(self, default_factory: Callable[[], Any], initial: Any = None) -> None:
        self.default_factory = default_factory
        self.value = default_factory() if initial is None else initial

    def identity(self) -> "value_accumulator":
        return value_accumulator(self.default_factory)

    def add(self, other: Any) -> None:
        self.value = self.value + (other.value if isinstance(other, value_accumulator) else other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, value_accumulator) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


class list_accumulator(list[Any]):  # noqa: N801
    """A list; lists are joined."""

    def identity(self) -> "list_accumulator":
        """Return an empty one."""
        return list_accumulator()


class set_accumulator(set[Any]):  # noqa: N801
    """A set; sets are united."""

    def identity(self) -> "set_accumulator":
        """Return an empty one."""
        return set_accumulator()

    def add(self, other: Any) -> None:
        """Add all items of a set, or one item."""
        if isinstance(other, Set):
            self.update(other)
        else:
            super().add(other)


class dict_accumulator(dict[Any, Any]):  # noqa: N801
    """A dictionary; dictionaries are joined key by key."""

    def identity(self) -> "dict_accumulator":
        """Return one with the same keys, and nothing in them."""
        return dict_accumulator({key: value.identity() for key, value in self.items()})

    def __add__(self, other: Mapping[Any, Any]) -> Any:
        return accumulate(self, other)


class defaultdict_accumulator(defaultdict[Any, Any]):  # noqa: N801
    """A dictionary that makes its values itself."""

    def identity(self) -> "defaultdict_accumulator":
        """Return an empty one."""
        return defaultdict_accumulator(self.default_factory)

    def add(self, other: Mapping[Any, Any]) -> None:
        """Add another to this one, key by key."""
        for key, value in other.items():
            self[key] += value

    def __add__(self, other: Mapping[Any, Any]) -> Any:
        return accumulate(self, other)


class column_accumulator(AccumulatorABC):  # noqa: N801
    """An array; arrays are joined end to end.

    Examples
    --------
    >>> (column_accumulator(np.array([1, 2])) + column_accumulator(np.array([3]))).value
    array([1, 2, 3])
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    @property
    def value(self) -> Any:
        """The array, of NumPy or awkward."""
        return self._value

    def identity(self) -> "column_accumulator":
        return column_accumulator(self._value[:0])

    def add(self, other: "column_accumulator") -> None:
        is_plain = isinstance(self._value, np.ndarray) and isinstance(other.value, np.ndarray)
        join = np.concatenate if is_plain else ak.concatenate
        self._value = join([self._value, other.value])
