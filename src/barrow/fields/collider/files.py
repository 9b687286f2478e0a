"""Files of events: ROOT trees, RNTuples and Parquet with one face.

A file is opened once in each thread of a worker and stays open while it is in use. What
reading took, and how much came, is noted by the file.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from barrow.errors import InputError
from barrow.fields.collider.columns import Column

MOST_OPEN = 16


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
        except MemoryError:
            raise
        except Exception as error:
            # Any library beneath may stumble over broken bytes in its own way.
            shown = ", ".join(sorted(names)[:3]) + (" …" if len(names) > 3 else "")
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise FaultError(
                f"{self.path}: {shown} of events {start} to {stop} cannot be read: {reason}"
            ) from error
        for name, column in found.items():
            self._check(name, column, stop - start)
        effort = self.effort
        spent = time.perf_counter() - began
        effort.read_seconds += spent - (effort.decompress_seconds - decompressed)
        effort.value_bytes += sum(column.values.nbytes for column in found.values())
        return found

    def _check(self, name: str, column: Values, length: int) -> None:
        found = len(column.values) if column.offsets is None else len(column.offsets) - 1
        if found != length:
            raise FaultError(
                f"{self.path}: {name} has {found} events where {length} were asked for"
            )


class _RootFile(EventFile):
    """What ROOT files of both kinds share."""

    def __init__(self, path: str, tree: str) -> None:
        super().__init__(path, tree)
        import uproot

        # Mapped into memory: no thread, no copy. What is elsewhere is read as uproot thinks best.
        options = {} if "://" in path else {"handler": uproot.MemmapSource}
        self.root = uproot.open(path, **options)
        self._object = find_tree(self.root, path, tree)
        self._seen_bytes = 0

    @property
    def uuid(self) -> str:
        return str(self.root.file.uuid)

    def close(self) -> None:
        self.root.close()

    def _count_bytes(self) -> None:
        now = self.root.file.source.num_requested_bytes
        self.effort.read_bytes += now - self._seen_bytes
        self._seen_bytes = now


class TreeFile(_RootFile):
    """A ROOT tree."""

    @property
    def entries(self) -> int:
        return int(self._object.num_entries)

    @cached_property
    def edges(self) -> np.ndarray:
        # Of a few branches: all of them would have to be looked at otherwise.
        branches = [branch for branch in self._object.branches if branch.num_baskets][:4]
        common: set[int] | None = None
        for branch in branches:
            offsets = set(branch.entry_offsets)
            common = offsets if common is None else common & offsets
        return _as_edges(common or (), self.entries)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        found = {branch.name: _describe_branch(branch) for branch in self._object.branches}
        return {name: column for name, column in found.items() if column is not None}

    def _fetch(self, names: Collection[str], start: int, stop: int) -> dict[str, Values]:
        clock = _Clock(self.effort)
        found = {}
        for name in names:
            array = self._object[name].array(
                entry_start=start,
                entry_stop=stop,
                decompression_executor=clock,
                interpretation_executor=_inline(),
                array_cache=None,
                library="ak" if self.columns[name].is_jagged else "np",
            )
            found[name] = _split(array)
        self._count_bytes()
        return found


class NtupleFile(_RootFile):
    """An RNTuple, the successor of trees."""

    @property
    def entries(self) -> int:
        return int(self._object.num_entries)

    @cached_property
    def edges(self) -> np.ndarray:
        firsts = (cluster.num_first_entry for cluster in self._object.cluster_summaries)
        return _as_edges(firsts, self.entries)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        form = self._object.to_akform()
        form = form[0] if isinstance(form, tuple) else form
        found = {
            name: _describe_form(inner)
            for name, inner in zip(form.fields, form.contents, strict=True)
        }
        return {name: column for name, column in found.items() if column is not None}

    def _fetch(self, names: Collection[str], start: int, stop: int) -> dict[str, Values]:
        found = {
            name: _split(self._object[name].array(entry_start=start, entry_stop=stop))
            for name in names
        }
        self._count_bytes()
        return found


class ParquetFile(EventFile):
    """A Parquet file."""

    def __init__(self, path: str, tree: str) -> None:
        super().__init__(path, tree)
        import pyarrow.parquet

        self._file = pyarrow.parquet.ParquetFile(path)

    @property
    def entries(self) -> int:
        return int(self._file.metadata.num_rows)

    @cached_property
    def edges(self) -> np.ndarray:
        meta = self._file.metadata
        rows = [meta.row_group(number).num_rows for number in range(meta.num_row_groups)]
        return _as_edges(np.cumsum([0, *rows]), self.entries)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        import pyarrow

        found = {}
        for item in self._file.schema_arrow:
            is_jagged = pyarrow.types.is_list(item.type) or pyarrow.types.is_large_list(item.type)
            inner = item.type.value_type if is_jagged else item.type
            with suppress(NotImplementedError):
                dtype = np.dtype(inner.to_pandas_dtype())
                if dtype.kind in "biuf":
                    found[item.name] = Column(dtype.name, is_jagged)
        return found

    def close(self) -> None:
        self._file.close()

    def _fetch(self, names: Collection[str], start: int, stop: int) -> dict[str, Values]:
        import awkward as ak

        edges = self._group_edges
        first = int(np.searchsorted(edges, start, side="right")) - 1
        last = int(np.searchsorted(edges, max(start + 1, stop), side="left"))
        groups = range(first, min(last, self._file.num_row_groups))
        table = self._file.read_row_groups(list(groups), columns=list(names), use_threads=False)
        self.effort.read_bytes += self._stored_bytes(groups, names)
        table = table.slice(start - int(edges[first]), stop - start)
        return {name: _split(ak.drop_none(ak.from_arrow(table[name]))) for name in names}

    @cached_property
    def _group_edges(self) -> np.ndarray:
        meta = self._file.metadata
        rows = [meta.row_group(number).num_rows for number in range(meta.num_row_groups)]
        return np.cumsum([0, *rows])

    def _stored_bytes(self, groups: range, names: Collection[str]) -> int:
        total = 0
        for number in groups:
            group = self._file.metadata.row_group(number)
            for index in range(group.num_columns):
                column = group.column(index)
                if column.path_in_schema.partition(".")[0] in names:
                    total += column.total_compressed_size
        return total


def open_file(path: str, tree: str) -> EventFile:
    """Return a file that is open, anew."""
    began = time.perf_counter()
    try:
        opened = _open(path, tree)
    except (InputError, MemoryError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise FaultError(f"{path} cannot be opened: {reason}") from error
    opened.effort.open_seconds += time.perf_counter() - began
    return opened


def _open(path: str, tree: str) -> EventFile:
    if path.endswith((".parquet", ".parq")):
        return ParquetFile(path, tree)
    opened = TreeFile(path, tree)
    if not hasattr(opened._object, "cluster_summaries"):
        return opened
    opened.close()
    return NtupleFile(path, tree)


@contextmanager
def borrowed(path: str, tree: str) -> Iterator[EventFile]:
    """Yield a file that this thread keeps open; one that made trouble is opened anew next time."""
    shelf = _shelf()
    key = path, tree
    opened = shelf.pop(key, None) or open_file(path, tree)
    try:
        yield opened
    except BaseException:
        opened.close()
        raise
    shelf[key] = opened
    while len(shelf) > MOST_OPEN:
        shelf.popitem(last=False)[1].close()


def close_all() -> None:
    """Close what this thread keeps open."""
    shelf = _shelf()
    while shelf:
        shelf.popitem()[1].close()


_LOCAL = threading.local()


def _shelf() -> "OrderedDict[tuple[str, str], EventFile]":
    if not hasattr(_LOCAL, "shelf"):
        _LOCAL.shelf = OrderedDict()
    found: OrderedDict[tuple[str, str], EventFile] = _LOCAL.shelf
    return found


def find_tree(file: Any, path: str, tree: str) -> Any:
    """Return the tree of this name in an open ROOT file, or say which there are."""
    try:
        return file[tree]
    except KeyError:
        names = sorted({key.partition(";")[0] for key in file.keys(recursive=True)})
        shown = ", ".join(map(repr, names[:10])) or "nothing"
        raise InputError(f"{path} has no tree {tree!r}. It holds {shown}.") from None


@dataclass
class _Clock:
    """Runs what uproot would hand to threads, here and now, and notes how long it takes."""

    effort: Effort
    num_workers: int = field(default=0, init=False)

    def submit(self, task: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        from uproot.source.futures import TrivialFuture

        began = time.perf_counter()
        result = task(*args, **kwargs)
        self.effort.decompress_seconds += time.perf_counter() - began
        return TrivialFuture(result)


def _inline() -> Any:
    from uproot.source.futures import TrivialExecutor

    return TrivialExecutor()


def _as_edges(firsts: Any, entries: int) -> np.ndarray:
    return np.unique([0, *(int(first) for first in firsts if first < entries), entries])


_LEAVES = {
    "TLeafB": "int8",
    "TLeafS": "int16",
    "TLeafI": "int32",
    "TLeafL": "int64",
    "TLeafF": "float32",
    "TLeafD": "float64",
    "TLeafO": "bool",
}


def _describe_branch(branch: Any) -> Column | None:
    """Return what a branch holds; None if it is nothing that an array of numbers can hold."""
    leaves = branch.member("fLeaves")
    if branch.classname != "TBranch" or len(leaves) != 1 or len(branch.branches):
        return _describe_interpretation(branch)
    (leaf,) = leaves
    dtype = _LEAVES.get(leaf.classname)
    if dtype is None or leaf.member("fLen") != 1:
        return _describe_interpretation(branch)
    is_unsigned = leaf.member("fIsUnsigned") and dtype.startswith("int")
    return Column(f"u{dtype}" if is_unsigned else dtype, leaf.member("fLeafCount") is not None)


def _describe_interpretation(branch: Any) -> Column | None:
    """Return what uproot makes of a branch; it takes longer."""
    import uproot

    kind = branch.interpretation
    is_jagged = isinstance(kind, uproot.AsJagged)
    inner = kind.content if is_jagged else kind
    if not isinstance(inner, uproot.AsDtype) or isinstance(inner, uproot.AsDouble32):
        return None
    dtype = inner.to_dtype
    if dtype.shape or dtype.fields or dtype.kind not in "biuf":
        return None
    return Column(dtype.newbyteorder("=").name, is_jagged)


def _describe_form(form: Any) -> Column | None:
    is_jagged = form.is_list
    inner = form.content if is_jagged else form
    return Column(inner.primitive, is_jagged) if inner.is_numpy and not inner.inner_shape else None


def _split(array: Any) -> Values:
    """Return an array of either library as flat values and where each event begins."""
    if isinstance(array, np.ndarray):
        return Values(array, None)
    import awkward as ak

    layout = ak.to_packed(array).layout
    if layout.is_list:
        layout = layout.to_ListOffsetArray64(True)
        return Values(np.asarray(layout.content.data), np.asarray(layout.offsets.data))
    return Values(np.asarray(layout.data), None)
