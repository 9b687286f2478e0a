"""Columns of a file put together into collections: ``Muon_pt`` becomes ``events.Muon.pt``.

Names in, a form out: nothing is read here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Schema = Literal["nanoaod", "flat"]

COUNTS = "counts"
"""Ends the name of a buffer that holds where the items of each event begin."""
MOMENTA = (
    (frozenset(("pt", "eta", "phi", "mass")), "Momentum4D"),
    (frozenset(("pt", "eta", "phi")), "Momentum3D"),
    (frozenset(("pt", "phi")), "Momentum2D"),
)
"""What a collection is, by the columns that it has; the first that fits."""


@dataclass(frozen=True)
class Column:
    """A column of a file: a number for each event, or some."""

    dtype: str
    is_jagged: bool = False


def group_columns(columns: Mapping[str, Column], schema: Schema) -> dict[str, dict[str, str]]:
    """Return the columns of each collection by their short names; "" for a plain column.

    Examples
    --------
    >>> number, some = Column("float32"), Column("float32", is_jagged=True)
    >>> columns = {"run": number, "nMuon": number, "Muon_pt": some, "MET_pt": number}
    >>> group_columns(columns, "nanoaod")
    {'run': {'': 'run'}, 'Muon': {'pt': 'Muon_pt'}, 'MET': {'pt': 'MET_pt'}}
    >>> list(group_columns(columns, "flat"))
    ['run', 'nMuon', 'Muon_pt', 'MET_pt']
    """
    if schema == "flat":
        return {name: {"": name} for name in columns}
    groups: dict[str, dict[str, str]] = {}
    prefixes = {name.partition("_")[0] for name in columns}
    for name in columns:
        prefix, _, field = name.partition("_")
        if not field and name.startswith("n") and name[1:] in prefixes:
            continue  # it counts the items of a collection, which know it themselves
        groups.setdefault(prefix, {})[field] = name
    return groups


class Fields(Mapping[str, Any]):
    """The fields of events by name, each a form that says what its buffers are.

    A form is made when it is asked for: of a thousand columns few are used.
    """

    def __init__(self, columns: Mapping[str, Column], schema: Schema) -> None:
        self._columns = columns
        self._members: dict[str, Mapping[str, str]] = {}
        self._forms: dict[str, Any] = {}
        for collection, members in group_columns(columns, schema).items():
            self._members |= _part_collection(collection, members, columns)

    def __getitem__(self, name: str) -> Any:
        if name not in self._forms:
            self._forms[name] = self._make(name, self._members[name])
        return self._forms[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def _make(self, name: str, members: Mapping[str, str]) -> Any:
        columns = self._columns
        if "" in members:
            return _make_plain(members[""], columns)
        if _is_counted(name, columns) and any(columns[c].is_jagged for c in members.values()):
            return _make_list(name, members, columns)
        return _make_record(members, columns, is_inner=False)


def _part_collection(
    name: str, members: Mapping[str, str], columns: Mapping[str, Column]
) -> dict[str, Mapping[str, str]]:
    """Return the fields of the events that come from one collection, and the columns of each."""
    if "" in members:
        # A plain column has taken the name, so the others keep theirs.
        return {(name if not field else c): {"": c} for field, c in members.items()}
    some = {field: c for field, c in members.items() if columns[c].is_jagged}
    if some and _is_counted(name, columns):
        alone = [c for c in members.values() if not columns[c].is_jagged]
        return {name: some, **{column: {"": column} for column in alone}}
    one = {field: c for field, c in members.items() if not columns[c].is_jagged}
    return {name: {**one, **some}}


def _is_counted(name: str, columns: Mapping[str, Column]) -> bool:
    counter = columns.get(f"n{name}")
    return counter is not None and not counter.is_jagged


def _make_list(name: str, members: Mapping[str, str], columns: Mapping[str, Column]) -> Any:
    from awkward.forms import ListOffsetForm

    record = _make_record(members, columns, is_inner=True)
    return ListOffsetForm("i64", record, form_key=f"n{name}/{COUNTS}")


def _make_record(
    members: Mapping[str, str], columns: Mapping[str, Column], *, is_inner: bool
) -> Any:
    from awkward.forms import RecordForm

    make = _make_flat if is_inner else _make_plain
    forms = [make(column, columns) for column in members.values()]
    kind = next((kind for fields, kind in MOMENTA if fields <= members.keys()), None)
    return RecordForm(forms, list(members), parameters={"__record__": kind} if kind else None)


def _make_plain(column: str, columns: Mapping[str, Column]) -> Any:
    from awkward.forms import ListOffsetForm

    flat = _make_flat(column, columns)
    if not columns[column].is_jagged:
        return flat
    return ListOffsetForm("i64", flat, form_key=f"{column}/offsets")


def _make_flat(column: str, columns: Mapping[str, Column]) -> Any:
    from awkward.forms import NumpyForm

    return NumpyForm(columns[column].dtype, form_key=f"{column}/values")
