"""A source as an array that is read when it is indexed: for libraries that want an array."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from barrow.model.source import Source
from barrow.shared import Ranges


@dataclass(frozen=True)
class LazyArray:
    """An array that is read when it is indexed.

    Examples
    --------
    >>> from barrow.sources.opening import open_source
    >>> lazy = LazyArray(open_source(np.arange(12).reshape(3, 4)))
    >>> lazy.shape, lazy[1, ::2].tolist(), lazy[[0, 2], 1].tolist()
    ((3, 4), [4, 6], [1, 9])
    """

    source: Source

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        return self.source.shape

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return self.source.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.source.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return int(np.prod(self.shape))

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return self.source.nbytes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        ranges, inner = find_ranges(key, self.shape)
        return self.source.read(ranges)[inner]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[()], dtype)

    def __repr__(self) -> str:
        return (
            f"<{self.dtype} {' × '.join(map(str, self.shape))} of '{self.source.name}', not read>"
        )


def find_ranges(key: Any, shape: Sequence[int]) -> tuple[Ranges, Any]:
    """Return the block that an index touches, and the same index inside that block."""
    keys = list(key if isinstance(key, tuple) else (key,))
    if any(part is Ellipsis for part in keys):
        place = next(i for i, part in enumerate(keys) if part is Ellipsis)
        keys[place : place + 1] = [slice(None)] * (len(shape) - len(keys) + 1)
    keys += [slice(None)] * (len(shape) - len(keys))
    if len(keys) > len(shape):
        raise IndexError(f"{len(keys)} indices for {len(shape)} dimensions")
    ranges: list[tuple[int, int]] = []
    inner: list[Any] = []
    for part, length in zip(keys, shape, strict=True):
        if isinstance(part, slice):
            chosen = range(length)[part]
            low, high = (min(chosen), max(chosen) + 1) if len(chosen) else (0, 0)
            inner.append(
                slice(None)
                if chosen.step == 1
                else slice(chosen[0] - low, None, chosen.step)
                if chosen.step > 0 and len(chosen)
                else np.array([index - low for index in chosen], int)
            )
        elif isinstance(part, (int, np.integer)):
            index = range(length)[int(part)]
            low, high = index, index + 1
            inner.append(0)
        else:
            listed = np.asarray(part)
            listed = np.flatnonzero(listed) if listed.dtype == bool else listed % max(length, 1)
            low, high = (int(listed.min()), int(listed.max()) + 1) if listed.size else (0, 0)
            inner.append(listed - low)
        ranges.append((low, high))
    return tuple(ranges), tuple(inner)
