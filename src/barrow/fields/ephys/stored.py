"""Samples that lie in a file, and trials cut out of them.

Turns what is stored into a :class:`~barrow.model.source.Source` of trial × time ×
the rest. Nothing is read before it is asked for.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.identity import identify_text
from barrow.sources.lazy import LazyArray
from barrow.sources.mapped import MappedReader
from barrow.sources.memory import ArrayReader
from barrow.sources.opening import open_source


def open_array(data: Any, name: str | None = None) -> np.ndarray | LazyArray:
    """Return data of any kind that barrow opens as an array, read when it is indexed.

    A dataset of an HDF5 file that lies there in one piece is mapped.
    """
    if isinstance(data, np.ndarray) and not isinstance(data, np.memmap):
        return data
    if isinstance(data, LazyArray):
        return data
    source = open_source(data, name=name)
    mapped = _find_mapping(source)
    return LazyArray(replace(source, read=mapped) if mapped is not None else source)


def _find_mapping(source: Source) -> MappedReader | None:
    path, dataset = getattr(source.read, "path", None), getattr(source.read, "name", None)
    if type(source.read).__name__ != "Hdf5Reader" or path is None or not os.path.isfile(path):
        return None
    import h5py

    with h5py.File(path, "r") as file:
        found = file[dataset]
        offset = found.id.get_offset()
        is_plain = found.chunks is None and not found.external and not found.is_virtual
    if offset is None or not is_plain or source.dtype.hasobject or not source.nbytes:
        return None
    return MappedReader(path, offset, source.dtype, source.shape, _strides(source))


def _strides(source: Source) -> tuple[int, ...]:
    steps = np.cumprod([source.dtype.itemsize, *source.shape[:0:-1]])[::-1]
    return tuple(int(step) for step in steps)


@dataclass(frozen=True, eq=False)
class TrialReader(Reader):
    """Read blocks of trial × time × rest from samples that are stacked, or padded in a cube."""

    inner: Reader
    is_cube: bool
    """Whether the samples are stored as trial × time × rest."""
    rows: np.ndarray
    """Of each trial: its number in the cube or 0, its first sample, its samples."""
    picks: tuple[np.ndarray | None, ...]
    """Indices into the other dimensions; None for all."""
    dtype: np.dtype

    def __call__(self, ranges: Ranges) -> np.ndarray:
        (first, last), (low, high), *rest = ranges
        bounds, inside = self._rest(rest)
        rows = self.rows[first:last]
        run = self._read_run(rows, low, high, bounds)
        if run is not None:
            return np.asarray(run[(slice(None), slice(None), *inside)] if inside else run)
        shape = (last - first, high - low, *(stop - start for start, stop in rest))
        block = np.zeros(shape, self.dtype)
        for number, (trial, start, length) in enumerate(rows.tolist()):
            stop = min(high, length)
            if stop > low:
                part = self._read(trial, start + low, start + stop, bounds)
                block[number, : stop - low] = part[(slice(None), *inside)] if inside else part
        return block

    def _read(self, trial: int, start: int, stop: int, bounds: Ranges) -> np.ndarray:
        if self.is_cube:
            return np.asarray(self.inner(((trial, trial + 1), (start, stop), *bounds))[0])
        return self.inner(((start, stop), *bounds))

    def _read_run(self, rows: np.ndarray, low: int, high: int, bounds: Ranges) -> Any:
        """Return neighbouring trials by one read, if they are wanted from end to end."""
        trials, starts, lengths = rows.T
        if not len(rows) or low or (lengths != high).any():
            return None
        if self.is_cube:
            if (starts != starts[0]).any() or (np.diff(trials) != 1).any():
                return None
            whole = ((int(trials[0]), int(trials[-1]) + 1), (int(starts[0]), int(starts[0]) + high))
            return self.inner((*whole, *bounds))
        if (np.diff(starts) != high).any():
            return None
        block = self.inner(((int(starts[0]), int(starts[-1]) + high), *bounds))
        return block.reshape(len(rows), high, *block.shape[1:])

    def _rest(self, rest: Sequence[tuple[int, int]]) -> tuple[Ranges, tuple[Any, ...]]:
        bounds: list[tuple[int, int]] = []
        inside: list[Any] = []
        is_picked = False
        for pick, (start, stop) in zip(self.picks, rest, strict=True):
            if pick is None or start == stop:
                bounds.append((start, stop))
                inside.append(slice(None))
                continue
            wanted = pick[start:stop]
            low, high = int(wanted.min()), int(wanted.max()) + 1
            bounds.append((low, high))
            is_run = np.array_equal(wanted, np.arange(low, high))
            inside.append(slice(None) if is_run else wanted - low)
            is_picked |= not is_run
        # Several lists of indices at once would be taken in pairs.
        if sum(isinstance(part, np.ndarray) for part in inside) > 1:
            raise NotImplementedError("two dimensions cannot be picked from at once")
        return tuple(bounds), tuple(inside) if is_picked else ()

    def identity(self) -> str | None:
        inner = self.inner.identity()
        if inner is None:
            return None
        digest = hashlib.sha256(np.ascontiguousarray(self.rows).tobytes())
        for pick in self.picks:
            digest.update(b"all" if pick is None else pick.tobytes())
        return identify_text(inner, self.is_cube, digest.hexdigest())

    def shared(self) -> Reader:
        return TrialReader(self.inner.shared(), self.is_cube, self.rows, self.picks, self.dtype)


@dataclass(frozen=True, eq=False)
class HeldTrialReader(TrialReader):
    """The same for samples in the memory of this process: only the block that is needed travels."""

    is_heavy: ClassVar[bool] = True

    def only(self, ranges: Ranges) -> Reader:
        return ArrayReader(self(ranges), tuple(start for start, _ in ranges))


def cut_trials(
    array: np.ndarray | LazyArray,
    rows: np.ndarray,
    *,
    is_cube: bool,
    dims: Sequence[str],
    picks: Sequence[np.ndarray | None],
    name: str,
) -> Source:
    """Return trials as a source of trial × time × rest; shorter ones have zeros behind them."""
    longest = int(rows[:, 2].max(initial=0))
    plain = (
        _reshape(array, rows, is_cube, longest)
        if not any(pick is not None for pick in picks)
        else None
    )
    inner = array.source if isinstance(array, LazyArray) else open_source(array)
    rest = inner.shape[2:] if is_cube else inner.shape[1:]
    lengths = [len(rows), longest]
    lengths += [n if p is None else len(p) for n, p in zip(rest, picks, strict=True)]
    if isinstance(plain, np.ndarray):
        return replace(open_source(plain, dims=dims), name=name)
    reader: Reader
    if isinstance(plain, MappedReader):
        reader = plain
    else:
        kind = HeldTrialReader if inner.read.is_heavy else TrialReader
        reader = kind(inner.read, is_cube, rows, tuple(picks), inner.dtype)
    return Source(
        name=name,
        lengths=dict(zip(dims, lengths, strict=True)),
        dtype=inner.dtype,
        read=reader,
        grain=_grain(inner, is_cube, longest, dims, picks),
    )


def _grain(
    inner: Source, is_cube: bool, longest: int, dims: Sequence[str], picks: Sequence[Any]
) -> dict[str, int]:
    stored = list(inner.grain.values())
    if not is_cube:
        stored = [-(-stored[0] // max(longest, 1)), 1, *stored[1:]]
    grain = dict(zip(dims, stored, strict=True))
    return {
        d: 1 if p is not None else grain[d] for d, p in zip(dims, (None, None, *picks), strict=True)
    }


def _reshape(
    array: np.ndarray | LazyArray, rows: np.ndarray, is_cube: bool, longest: int
) -> np.ndarray | MappedReader | None:
    """Return trials of one length, one after the other, as a view without any reader."""
    trials, starts, lengths = rows.T
    if not len(rows) or (lengths != longest).any() or not longest:
        return None
    count = len(rows)
    if is_cube:
        if isinstance(array, LazyArray) or (starts != 0).any() or array.shape[1] != longest:
            return None
        is_run = np.array_equal(trials, np.arange(trials[0], trials[0] + count))
        return array[int(trials[0]) : int(trials[0]) + count] if is_run else None
    if (np.diff(starts) != longest).any():
        return None
    first = int(starts[0])
    if isinstance(array, np.ndarray):
        part = array[first : first + count * longest]
        return part.reshape(count, longest, *part.shape[1:])
    read = array.source.read
    if not isinstance(read, MappedReader):
        return None
    step = read.strides[0]
    return replace(
        read,
        offset=read.offset + first * step,
        shape=(count, longest, *read.shape[1:]),
        strides=(step * longest, *read.strides),
    )
