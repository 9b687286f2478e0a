"""Parquet files of events."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cached_property

import numpy as np

from barrow.fields.collider.columns import Column
from barrow.fields.collider.files import EventFile, Values, as_edges, split_array


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
        return as_edges(self._group_edges, self.entries)

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
        return {name: split_array(ak.drop_none(ak.from_arrow(table[name]))) for name in names}

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
