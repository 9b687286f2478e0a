"""A source: data opened but not read."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

import numpy as np

from barrow.shared import Ranges


class Reader(ABC):
    """How the values of a source are read: small, and fit to be sent to a worker.

    A reader is called with one ``(start, stop)`` for each dimension and returns
    the NumPy array of just that block. What it returns may be a view of memory
    that belongs to the user, but then it is marked read-only.
    """

    is_heavy: ClassVar[bool] = False
    """Whether the reader is too large to travel as it is: see :meth:`only`."""

    @abstractmethod
    def __call__(self, ranges: Ranges) -> np.ndarray:
        """Return the block."""

    def only(self, ranges: Ranges) -> "Reader":  # noqa: ARG002 - for those who override it
        """Return what a worker needs in order to read no more than this block.

        Called for heavy readers only: a graph of 100,000 tasks does not travel
        with each of its chunks.
        """
        return self

    def identity(self) -> str | None:
        """Return text that changes when the data do, or None if that cannot be known.

        Asked only when a result is to be stored, so it may look at the data.
        """
        return None

    def shared(self) -> "Reader":
        """Return a reader that other processes of this machine can use.

        An array in this process's memory moves to shared memory; all other
        readers can be opened anywhere and stay as they are.
        """
        return self


@dataclass(frozen=True)
class Labels:
    """What an xarray object says about its data, kept for the answer."""

    name: str | None
    coords: Any
    attrs: Mapping[Any, Any]


@dataclass(frozen=True)
class Source:
    """Data opened but not read: named dimensions, a dtype, a grain and a reader.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> movie = barrow.open(np.zeros((100, 48, 64), "u1"), dims=("frame", "height", "width"))
    >>> movie.lengths
    {'frame': 100, 'height': 48, 'width': 64}
    >>> movie.read(((5, 7), (0, 1), (0, 4))).shape
    (2, 1, 4)
    """

    name: str
    lengths: Mapping[str, int]
    """Length of each dimension, in storage order."""
    dtype: np.dtype
    read: Reader
    grain: Mapping[str, int] = field(default_factory=dict)
    """Length of a storage chunk in each dimension; 1 where any cut is as good."""
    labels: Labels | None = None
    """Set for xarray objects: the answer is labelled like the question."""
    has_names: bool = True
    """Whether the dimensions were named by somebody, or just numbered."""

    def __post_init__(self) -> None:
        grain = {
            dim: max(1, min(self.grain.get(dim, 1), length)) for dim, length in self.lengths.items()
        }
        object.__setattr__(self, "grain", grain)
        object.__setattr__(self, "lengths", {d: int(n) for d, n in self.lengths.items()})
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions, in storage order."""
        return tuple(self.lengths)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions, in storage order."""
        return tuple(self.lengths.values())

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array, uncompressed."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def everything(self) -> Ranges:
        """The ranges of the whole array."""
        return tuple((0, length) for length in self.shape)
