"""Dask arrays, read block by block without their graph travelling along.

The graph is optimised once, in this process, when the first block is asked for.
After that a worker is sent only the few tasks that lead to its blocks, and runs
them by itself, one after the other: no scheduler of Dask's takes part.
"""

import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, ClassVar

import numpy as np

from barrow.errors import InputError
from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.blocks import Layout, Overlap, choose_grain
from barrow.sources.dask_graphs import cull, holds_futures, prepare_graph
from barrow.sources.dask_origins import identify_origins
from barrow.sources.memory import lock
from barrow.sources.naming import build_source


def open_object(data: Any, name: str | None, dims: Sequence[str] | None) -> Source:
    """Return a Dask array as a source.

    Blocks of unequal length have no single grain: see
    :func:`~barrow.sources.blocks.choose_grain` for the one that is taken.

    Examples
    --------
    >>> import dask.array as da
    >>> doubled = open_object(2 * da.arange(10, chunks=5), "doubled", ("time",))
    >>> doubled.grain, doubled.read(((4, 7),))
    ({'time': 5}, array([ 8, 10, 12]))
    """
    check_array(data)
    return build_source(
        DaskReader(data),
        name=name or "array",
        shape=data.shape,
        dtype=data.dtype,
        dims=dims,
        grain=[choose_grain(sizes) for sizes in data.chunks],
    )


def check_array(data: Any) -> None:
    """Refuse what has no known blocks of NumPy values."""
    if not hasattr(data, "chunks") or not hasattr(data, "_meta"):
        raise InputError(
            f"A Dask {type(data).__name__} is not an array. Convert it first, for example with "
            "data.to_dask_array(lengths=True) or dask.array.from_delayed(data, shape, dtype)."
        )
    if any(isnan(size) for sizes in data.chunks for size in sizes):
        raise InputError(
            f"The Dask array has blocks of unknown length: chunks={data.chunks}. "
            "Call data.compute_chunk_sizes() first."
        )
    if type(data._meta) is not np.ndarray:
        kind = f"{type(data._meta).__module__}.{type(data._meta).__qualname__}"
        raise InputError(
            f"The blocks of the Dask array are of type {kind}, not NumPy arrays. "
            "Convert them first with data.map_blocks(...)."
        )
    if holds_futures(data):
        raise InputError(
            "The blocks of the Dask array lie in the memory of a cluster's workers, where only "
            "that cluster can read them. Give the array as it was before persist(), or store it "
            "with data.to_zarr(path) and give the path."
        )


class DaskReader(Reader):
    """Read blocks of a Dask array, by way of the whole graph."""

    is_heavy: ClassVar[bool] = True

    def __init__(self, array: Any) -> None:
        self.array = array
        self._layout = Layout.of_chunks(array.chunks)
        self._graph: Mapping[Any, Any] | None = None
        self._lock = threading.Lock()

    def __call__(self, ranges: Ranges) -> np.ndarray:
        return self.only(ranges)(ranges)

    def only(self, ranges: Ranges) -> "BlocksReader":
        layout = self._layout.cropped(ranges)
        keys = [(self.array.name, *part.index) for part in layout.overlaps(ranges)]
        graph = cull(self._prepared(), keys)
        return BlocksReader(graph, self.array.name, layout, self.array.dtype)

    def identity(self) -> str | None:
        origins = identify_origins(self._prepared())
        return None if origins is None else f"dask|{self.array.name}|{origins}"

    def _prepared(self) -> Mapping[Any, Any]:
        with self._lock:
            if self._graph is None:
                self._graph = prepare_graph(self.array)
            return self._graph

    def __reduce__(self) -> tuple[type["DaskReader"], tuple[Any]]:
        return DaskReader, (self.array,)


@dataclass(frozen=True, eq=False)
class BlocksReader(Reader):
    """Read a few blocks of a Dask array, by way of just the tasks they need."""

    graph: Mapping[Any, Any]
    name: str
    layout: Layout
    dtype: np.dtype

    def __call__(self, ranges: Ranges) -> np.ndarray:
        from dask._task_spec import Task, TaskRef
        from dask.local import get_sync

        shape = tuple(stop - start for start, stop in ranges)
        parts = list(self.layout.overlaps(ranges))
        keys: list[Any] = [(self.name, *part.index) for part in parts]
        graph = cull(self.graph, keys)
        if len(parts) == 1 and parts[0].is_whole:
            blocks = get_sync(graph, keys)
            is_held = _is_held(blocks)
            values = np.asarray(_shaped(blocks[0], parts[0]), self.dtype)
            return lock(values) if is_held else values
        # Putting a block into its place is one more task: each block is let go
        # of as soon as it is there, and each value is copied once.
        values = np.empty(shape, self.dtype)
        puts: list[Any] = [("barrow-put", *part.index) for part in parts]
        for put, key, part in zip(puts, keys, parts, strict=True):
            graph[put] = Task(put, _Put(values, part), TaskRef(key))
        if puts:
            get_sync(graph, puts)
        return values


class _Put:
    """Write a block's part into the answer."""

    def __init__(self, values: np.ndarray, part: Overlap) -> None:
        self._values, self._part = values, part

    def __call__(self, block: Any) -> None:
        self._values[self._part.outside] = _shaped(block, self._part)[self._part.inside]


def _shaped(block: Any, part: Overlap) -> np.ndarray:
    values = np.asarray(block)
    if values.shape != part.shape:
        raise InputError(
            f"Block {part.index} of the Dask array has shape {values.shape}, but its chunks say "
            f"{part.shape}. The function given to map_blocks changes the shape: "
            "tell it with chunks=, or drop_axis= and new_axis=."
        )
    return values


def _is_held(blocks: Sequence[Any]) -> bool:
    """Return whether the one block may be known to others: a graph can hold the user's array.

    A fresh block is known to the sequence it came in and to the question itself;
    likewise the memory beneath a fresh view.
    """
    if sys.getrefcount(blocks[0]) > 2:
        return True
    base = getattr(blocks[0], "base", None)
    if base is None:
        return False
    owns_memory = isinstance(base, np.ndarray) and base.base is None
    del base
    return not owns_memory or sys.getrefcount(blocks[0].base) > 2
