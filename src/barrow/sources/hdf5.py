"""Datasets in HDF5 files.

A reader is the address of a dataset. It opens the file for every block and
closes it again, which takes a third of a millisecond: a file kept open could not
be written by the user in the meantime, and would break when a process forks.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.blocks import to_index
from barrow.sources.identity import identify_file
from barrow.sources.memory import HeldReader
from barrow.sources.naming import build_source, list_names


def open_path(path: str, name: str | None, dims: Sequence[str] | None) -> Source:
    """Return a dataset of a file as a source: the one named, or the only one.

    Examples
    --------
    >>> import h5py, numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/run.h5"
    ...     with h5py.File(path, "w") as file:
    ...         _ = file.create_dataset("day/rates", data=np.arange(6), chunks=(3,))
    ...     rates = open_path(path, "day/rates", ("time",))
    ...     rates.name, rates.grain, rates.read(((2, 4),))
    ('rates', {'time': 3}, array([2, 3]))
    """
    with _open_file(path) as file:
        return _open_dataset(_choose_dataset(file, name), dims)


def open_object(data: Any, name: str | None, dims: Sequence[str] | None) -> Source:
    """Return an open dataset, or a dataset of an open file or group, as a source."""
    import h5py

    if not data:
        raise InputError(f"{data!r} belongs to a file that was closed. Give the path instead.")
    if isinstance(data, h5py.Dataset):
        return _open_dataset(data, dims)
    if isinstance(data, h5py.Group):
        return _open_dataset(_choose_dataset(data, name), dims)
    raise InputError(f"An h5py {type(data).__name__} is not a dataset. Give an h5py.Dataset.")


def _open_dataset(dataset: Any, dims: Sequence[str] | None) -> Source:
    if dataset.shape is None:
        raise InputError(f"The dataset {dataset.name!r} is empty: it has no shape and no values.")
    return build_source(
        _find_reader(dataset),
        name=(dataset.name or "array").rpartition("/")[2],
        shape=dataset.shape,
        dtype=dataset.dtype,
        dims=dims,
        found=[_name_dim(dim) for dim in dataset.dims],
        grain=dataset.chunks or (),
    )


def _find_reader(dataset: Any) -> Reader:
    path = dataset.file.filename
    if dataset.name is None or not os.path.isfile(path):
        return HeldReader(dataset, tuple(dataset.chunks or ()))
    if dataset.file.mode != "r":
        # Other processes see what is in the file, not what is about to be.
        dataset.file.flush()
    return Hdf5Reader(os.path.abspath(path), dataset.name)


@dataclass(frozen=True)
class Hdf5Reader(Reader):
    """Read blocks of a dataset."""

    path: str
    name: str

    def __call__(self, ranges: Ranges) -> np.ndarray:
        with _open_file(self.path) as file:
            dataset = file[self.name]
            return np.asarray(dataset[to_index(ranges)], dataset.dtype)

    def identity(self) -> str | None:
        file = identify_file(self.path)
        return file and f"{file}|{self.name}"


@contextmanager
def _open_file(path: str) -> Iterator[Any]:
    import h5py

    try:
        file = h5py.File(path, "r")
    except BlockingIOError:
        # Somebody has it open for writing; what they flushed can be read.
        file = h5py.File(path, "r", locking=False)
    with file:
        yield file


def _choose_dataset(group: Any, name: str | None) -> Any:
    import h5py

    where = f"{group.file.filename!r}"
    if name is not None:
        if name not in group:
            raise InputError(
                f"name={name!r} is not in {where}, which holds {_list_datasets(group)}."
            )
        if isinstance(group[name], h5py.Dataset):
            return group[name]
        return _choose_dataset(group[name], None)
    names = _find_datasets(group)
    if len(names) == 1:
        return group[names[0]]
    raise InputError(f"{where} holds {_list_datasets(group)}. Choose one dataset with name=.")


def _find_datasets(group: Any) -> list[str]:
    """Return the paths of all datasets but those that only label the axes of others."""
    import h5py

    names: list[str] = []

    def visit(name: str, found: Any) -> None:
        if isinstance(found, h5py.Dataset) and not h5py.h5ds.is_scale(found.id):
            names.append(name)

    group.visititems(visit)
    return names


def _list_datasets(group: Any) -> str:
    return list_names(_find_datasets(group)) or "no dataset"


def _name_dim(dim: Any) -> str | None:
    if dim.label:
        return str(dim.label)
    return str(dim[0].name).rpartition("/")[2] if len(dim) else None
