"""Events as awkward records whose columns are read when they are touched.

``events.Muon.pt`` reads ``Muon_pt``. What was touched is noted, so that the next chunk of
events reads it in one go.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from functools import partial
from os import PathLike, fspath
from typing import Any, Protocol

import awkward as ak
import numpy as np
from awkward.contents import RecordArray
from awkward.forms import NumpyForm

from barrow.fields.collider.behaviors import make_behavior
from barrow.fields.collider.columns import COUNTS, Schema
from barrow.fields.collider.files import EventFile, FaultError, Values
from barrow.fields.collider.opening import open_file


class Touching(Protocol):
    """Knows which columns were asked for."""

    @property
    def touched(self) -> Set[str]:
        """Their names."""


class Loader:
    """Reads the columns of some events: those known to be needed together, others one by one."""

    def __init__(
        self, file: EventFile, start: int, stop: int, together: Collection[str] = ()
    ) -> None:
        self._file = file
        self._start, self._stop = start, stop
        self._together = [name for name in together if name in file.columns]
        self._held: dict[str, Values] = {}
        self._lock = threading.RLock()
        self._touched: set[str] = set()

    @property
    def touched(self) -> Set[str]:
        """Columns that were asked for."""
        return self._touched

    def column(self, name: str) -> Values:
        """Return a column."""
        with self._lock:
            self._touched.add(name)
            if name not in self._held:
                names = self._together if name in self._together else [name]
                self._held |= self._file.read(names, self._start, self._stop)
                self._together = []
            return self._held[name]

    def values(self, name: str) -> np.ndarray:
        """Return the flat values of a column."""
        return self.column(name).values

    def offsets(self, name: str) -> np.ndarray:
        """Return where the values of each event begin in a column of lists."""
        found = self.column(name).offsets
        assert found is not None
        return found

    def counts(self, name: str) -> np.ndarray:
        """Return where the items of each event begin, from a column that counts them."""
        counts = self.values(name).astype(np.int64)
        if len(counts) and counts.min() < 0:
            raise FaultError(f"{self._file.path}: {name} counts fewer than no items")
        return np.concatenate([[0], np.cumsum(counts)])


def make_events(
    file: EventFile,
    start: int,
    stop: int,
    *,
    schema: Schema = "nanoaod",
    together: Collection[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> tuple[Any, Loader]:
    """Return some events of a file, and what reads them.

    Parameters
    ----------
    together
        Columns to read in one go as soon as one of them is touched.
    metadata
        What ``events.metadata`` says.
    """
    loader = Loader(file, start, stop, together)
    layout = _make_layout(file.fields(schema), stop - start, _Buffers(loader))
    attrs = {"metadata": dict(metadata or {})}
    events = ak.Array(layout, behavior=make_behavior(), attrs=attrs)
    return events, loader


def open_events(
    path: str | PathLike[str],
    treename: str = "Events",
    *,
    start: int = 0,
    stop: int | None = None,
    schema: Schema = "nanoaod",
) -> Any:
    """Return events of one file, to be looked at: columns are read when they are touched.

    Examples
    --------
    >>> import tempfile
    >>> from barrow import collider
    >>> path = collider.write_nanoaod(f"{tempfile.mkdtemp()}/few.root", 1000)
    >>> events = collider.open_events(path)
    >>> pairs = events.Muon[collider.ak.num(events.Muon) == 2]
    >>> masses = (pairs[:, 0] + pairs[:, 1]).mass
    >>> bool(collider.ak.any(abs(masses - 91) < 5))
    True
    """
    file = open_file(fspath(path), treename)
    stop = file.entries if stop is None else min(stop, file.entries)
    metadata = {"filename": fspath(path), "treename": treename}
    return make_events(file, min(start, stop), stop, schema=schema, metadata=metadata)[0]


class _Buffers(Mapping[str, Any]):
    """What each buffer of the form is read with, made when it is asked for."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getitem__(self, key: str) -> Any:
        name, _, part = key.rpartition("/")
        loader = self._loader
        read = {COUNTS: loader.counts, "offsets": loader.offsets, "values": loader.values}[part]
        return lambda: read(name)

    def __iter__(self) -> Any:
        raise TypeError("the buffers of events are known by name only")

    def __len__(self) -> int:
        raise TypeError("the buffers of events are known by name only")


class _Contents(list[Any]):
    """The contents of a record, each made when it is asked for.

    awkward keeps the list that it is given. Until it has been given its makers, and wherever
    it is not looked at item by item, it holds stand-ins that refuse to be read.
    """

    def __init__(self, length: int, stand_in: Any) -> None:
        super().__init__([stand_in] * length)
        self.makers: list[Callable[[], Any] | None] = [None] * length

    def __getitem__(self, where: Any) -> Any:
        if isinstance(where, slice):
            return [self[index] for index in range(*where.indices(len(self)))]
        make = self.makers[where]
        if make is not None:
            self[where] = make()
            self.makers[where] = None
        return super().__getitem__(where)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __add__(self, other: Iterable[Any]) -> list[Any]:  # type: ignore[override]
        return [*self, *other]

    def copy(self) -> list[Any]:
        return [*self]


def _make_layout(fields: Mapping[str, Any], length: int, buffers: Mapping[str, Any]) -> Any:
    """Return the events: a record of which each field is made when it is asked for."""

    def make(name: str) -> Any:
        form = fields[name]
        return ak.from_buffers(form, length, buffers, buffer_key="{form_key}", highlevel=False)

    stand_in = ak.from_buffers(
        NumpyForm("bool", form_key="x"), length, {"x-data": _refuse}, highlevel=False
    )
    contents = _Contents(len(fields), stand_in)
    layout = RecordArray(contents, [*fields], length, parameters={"__record__": "Events"})
    contents.makers = [partial(make, name) for name in fields]
    return layout


def _refuse() -> Any:
    raise AssertionError("a field of the events was not made")
