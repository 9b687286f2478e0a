"""Views of trials: as a sequence, and as one array with all trials one after the other."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np


class HasTrials(Protocol):
    """What a view needs of the object that it belongs to."""

    @property
    def lengths(self) -> np.ndarray:
        """Samples of each trial."""

    @property
    def rest_shape(self) -> tuple[int, ...]:
        """Lengths of all dimensions but trial and time."""

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""

    def read_trial(self, number: int) -> np.ndarray:
        """Return the values of a trial."""


class Trials(Sequence[np.ndarray]):
    """The trials of an object: each an array that is read when it is asked for."""

    def __init__(self, data: HasTrials) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data.lengths)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[index] for index in range(len(self))[number]]
        return self._data.read_trial(range(len(self))[number])

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return f"{len(self)} trials"


class Stacked:
    """All trials one after the other along time: what ``data`` is if that is not stored so."""

    def __init__(self, data: HasTrials) -> None:
        self._data = data
        self._stops = np.cumsum(data.lengths)
        self.shape = (int(data.lengths.sum()), *data.rest_shape)
        self.dtype = data.dtype
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[()], dtype)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        first, rest = (
            (keys[0], keys[1:]) if keys and keys[0] is not Ellipsis else (slice(None), keys)
        )
        if isinstance(first, (int, np.integer)):
            return self._read(range(len(self))[int(first) : int(first) + 1 or None])[0][rest]
        wanted = np.arange(len(self))[first]
        block = self._read(range(int(wanted.min()), int(wanted.max()) + 1)) if wanted.size else None
        if block is None:
            return np.empty((0, *self.shape[1:]), self.dtype)[(slice(None), *rest)]
        return block[wanted - wanted.min()][(slice(None), *rest)]

    def _read(self, rows: range) -> np.ndarray:
        if not len(rows):
            raise IndexError("sample out of range")
        parts = []
        trial = int(np.searchsorted(self._stops, rows.start, side="right"))
        at = rows.start
        while at < rows.stop:
            begin = int(self._stops[trial] - self._data.lengths[trial])
            stop = min(rows.stop, int(self._stops[trial]))
            parts.append(self._data.read_trial(trial)[at - begin : stop - begin])
            at, trial = stop, trial + 1
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def __repr__(self) -> str:
        return f"<{self.dtype} {' × '.join(map(str, self.shape))}, trials one after the other>"
