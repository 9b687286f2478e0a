"""ROOT files: trees, and RNTuples, which come after them."""

import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.collider.columns import Column
from barrow.fields.collider.files import Effort, EventFile, Values, as_edges, split_array

# Branches that are asked where a tree can be cut.
EDGE_BRANCHES = 4


def open_root(path: str, tree: str) -> EventFile:
    """Return a ROOT file that is open."""
    import uproot

    # Mapped into memory: no thread, no copy. What is elsewhere is read as uproot thinks best.
    options = {} if "://" in path else {"handler": uproot.MemmapSource}
    root = uproot.open(path, **options)
    try:
        found = find_tree(root, path, tree)
        kind = NtupleFile if hasattr(found, "cluster_summaries") else TreeFile
        return kind(path, tree, root, found)
    except BaseException:
        root.close()
        raise


class _RootFile(EventFile):
    """What ROOT files of both kinds share."""

    def __init__(self, path: str, tree: str, root: Any, found: Any) -> None:
        super().__init__(path, tree)
        self.root = root
        self._object = found
        self._seen_bytes = 0

    @property
    def entries(self) -> int:
        return int(self._object.num_entries)

    @property
    def uuid(self) -> str:
        return str(self.root.file.uuid)

    def close(self) -> None:
        self.root.close()

    @abstractmethod
    def _read_column(self, name: str, start: int, stop: int) -> Any:
        """Return some events of a column, as an array of NumPy or awkward."""

    def _fetch(self, names: Collection[str], start: int, stop: int) -> dict[str, Values]:
        found = {}
        for name in names:
            try:
                found[name] = split_array(self._read_column(name, start, stop))
            except MemoryError:
                raise
            except Exception as error:
                raise self.fault([name], start, stop, error) from error
        self._count_bytes()
        return found

    def _count_bytes(self) -> None:
        now = self.root.file.source.num_requested_bytes
        self.effort.read_bytes += now - self._seen_bytes
        self._seen_bytes = now


class TreeFile(_RootFile):
    """A ROOT tree."""

    @cached_property
    def edges(self) -> np.ndarray:
        # Of a few branches: all of them would have to be looked at otherwise.
        branches = islice((b for b in self._object.branches if b.num_baskets), EDGE_BRANCHES)
        common: set[int] | None = None
        for branch in branches:
            offsets = set(branch.entry_offsets)
            common = offsets if common is None else common & offsets
        return as_edges(common or (), self.entries)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        found = {branch.name: _describe_branch(branch) for branch in self._object.branches}
        return {name: column for name, column in found.items() if column is not None}

    def _read_column(self, name: str, start: int, stop: int) -> Any:
        return self._object[name].array(
            entry_start=start,
            entry_stop=stop,
            decompression_executor=_Clock(self.effort),
            interpretation_executor=_inline(),
            array_cache=None,
            library="ak" if self.columns[name].is_jagged else "np",
        )


class NtupleFile(_RootFile):
    """An RNTuple, the successor of trees."""

    @cached_property
    def edges(self) -> np.ndarray:
        firsts = (cluster.num_first_entry for cluster in self._object.cluster_summaries)
        return as_edges(firsts, self.entries)

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        form = self._object.to_akform()
        form = form[0] if isinstance(form, tuple) else form
        found = {
            name: _describe_form(inner)
            for name, inner in zip(form.fields, form.contents, strict=True)
        }
        return {name: column for name, column in found.items() if column is not None}

    def _read_column(self, name: str, start: int, stop: int) -> Any:
        return self._object[name].array(entry_start=start, entry_stop=stop)


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
