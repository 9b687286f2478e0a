"""Objects on disk: the containers of Syncopy (``.spy``), and Zarr stores.

A container is a folder with an HDF5 file for each object and a JSON file beside it;
Syncopy reads what is written here, and the other way round.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import barrow
from barrow.errors import InputError, OutputError
from barrow.fields.ephys.kinds import AnalogData, CrossSpectralData, SpectralData, TimeLockData
from barrow.fields.ephys.settings import StructDict, plain
from barrow.fields.ephys.stored import open_array
from barrow.fields.ephys.trial_data import TrialData

KINDS: dict[str, type[TrialData]] = {
    kind.__name__: kind for kind in (AnalogData, SpectralData, CrossSpectralData, TimeLockData)
}
SUFFIXES = {f".{name.removesuffix('Data').lower()}": kind for name, kind in KINDS.items()}
ATTRIBUTE = "ephys"
# Trials are written so many bytes at a time.
PIECE_BYTES = 2**25


def save(
    data: TrialData,
    container: Any = None,
    tag: str | None = None,
    filename: Any = None,
    overwrite: bool = False,
) -> Path:
    """Write an object, and return the path of its file.

    Parameters
    ----------
    container
        A folder; ``.spy`` is added. Or a ``.zarr`` store.
    tag
        What tells several objects in a container apart.
    filename
        A single file instead of a container.
    overwrite
        Whether to replace what is there.

    Examples
    --------
    >>> import tempfile
    >>> from barrow import ephys
    >>> noise = ephys.synthdata.white_noise(nTrials=2, nSamples=50, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save(noise, f"{folder}/rec")
    ...     path.name, load(f"{folder}/rec.spy").trials[1].shape
    ('rec.analog', (50, 2))
    """
    if (container is None) == (filename is None):
        raise InputError("Give a container= or a filename=, not both and not neither.")
    suffix = f".{type(data).__name__.removesuffix('Data').lower()}"
    if container is not None:
        folder = Path(os.fspath(container)).expanduser()
        if folder.suffix == ".zarr":
            return _save_zarr(data, folder, overwrite)
        folder = folder if folder.suffix == ".spy" else folder.with_name(folder.name + ".spy")
        path = folder / (folder.stem + (f"_{tag}" if tag else "") + suffix)
    else:
        path = Path(os.fspath(filename)).expanduser()
        path = path if path.suffix in SUFFIXES else path.with_name(path.name + suffix)
        if path.suffix != suffix:
            raise InputError(f"filename={str(path)!r}: {type(data).__name__} is kept as {suffix}.")
    if path.exists() and not overwrite:
        raise OutputError(f"{str(path)!r} exists. Set overwrite=True to replace it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(data, path)
    return path


def load(path: Any, tag: str | None = None, dataclass: str | None = None) -> Any:
    """Open an object: its values stay in the file until they are used.

    Parameters
    ----------
    path
        A container, a file of one, or a Zarr store that barrow made of trials.
    tag, dataclass
        Which of the objects of a container; with several a dictionary is returned.
    """
    place = Path(os.fspath(path)).expanduser()
    if not place.exists() and place.with_name(place.name + ".spy").exists():
        place = place.with_name(place.name + ".spy")
    if not place.exists():
        raise InputError(f"{str(place)!r} does not exist.")
    if (place / "zarr.json").exists():
        return _load_zarr(place)
    if place.is_file():
        return _read(place)
    wanted = None if dataclass is None else "." + dataclass.lower().lstrip(".")
    files = [
        file
        for file in sorted(place.iterdir())
        if file.suffix in SUFFIXES
        and (tag is None or tag in file.stem)
        and (wanted is None or file.suffix == wanted)
    ]
    if not files:
        kinds = ", ".join(SUFFIXES)
        raise InputError(f"{str(place)!r} holds no object ({kinds}) of tag={tag!r}.")
    if len(files) == 1:
        return _read(files[0])
    return {file.name: _read(file) for file in files}


def describe_store(data: TrialData, path: Path) -> None:
    """Write what the values of a Zarr store mean into its attributes."""
    import zarr

    array = zarr.open_array(str(path), mode="r+")
    array.attrs[ATTRIBUTE] = _describe(data)


def _pieces(data: TrialData) -> Iterator[tuple[int, np.ndarray]]:
    """Yield trials one after the other, several at a time, with their first row."""
    if isinstance(data.data, np.ndarray) and len(data.data) == int(data.lengths.sum()):
        yield 0, data.data  # they lie so already
        return
    row, held, size = 0, [], 0
    for trial in data.trials:
        held.append(trial)
        size += trial.nbytes
        if size >= PIECE_BYTES:
            yield row, np.concatenate(held)
            row, held, size = row + sum(map(len, held)), [], 0
    if held:
        yield row, np.concatenate(held)


def _describe(data: TrialData) -> dict[str, Any]:
    labels = {dim: plain(names) for dim, names in data.labels.items()}
    return {
        "dataclass": type(data).__name__,
        "dimord": list(data.dimord),
        "samplerate": data.samplerate,
        "trialdefinition": _stacked_definition(data).tolist(),
        "lengths": data.lengths.tolist(),
        "cfg": plain(data.cfg),
        "info": plain(data.info),
        "log": list(data._log),
        "labels": labels,
    }


def _stacked_definition(data: TrialData) -> np.ndarray:
    """Return the trial definition of the trials written one after the other."""
    table = data.trialdefinition
    stops = np.cumsum(data.lengths)
    table[:, 0], table[:, 1] = stops - data.lengths, stops
    return table


def _write(data: TrialData, path: Path) -> None:
    import h5py

    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    table = _stacked_definition(data)
    extra = {
        part: value
        for part in ("avg", "var", "cov")
        if (value := getattr(data, part, None)) is not None
    }
    shape = (int(data.lengths.sum()), *data.rest_shape)
    try:
        with h5py.File(fresh, "w") as file:
            values = file.create_dataset("data", shape, data.dtype)
            for row, block in _pieces(data):
                values[row : row + len(block)] = block
            for part, value in extra.items():
                file.create_dataset(part, data=value)
            kept = file.create_dataset(
                "trialdefinition", data=table, maxshape=(None, table.shape[1])
            )
            for key, value in (("dimord", list(data.dimord)), ("samplerate", data.samplerate)):
                file.attrs[key] = value
            facts = {
                "filename": path.name,
                "dataclass": type(data).__name__,
                "data_dtype": values.dtype.name,
                "data_shape": list(shape),
                "data_offset": values.id.get_offset(),
                "trl_dtype": kept.dtype.name,
                "trl_shape": list(table.shape),
                "trl_offset": None,
            }
        with open(fresh, "rb") as file:
            checksum = hashlib.file_digest(file, "sha1").hexdigest()
        data.note(f"saved: {path}")
        facts |= {
            "file_checksum": checksum,
            "order": "C",
            "checksum_algorithm": "openssl_sha1",
            "dimord": list(data.dimord),
            "_version": f"barrow {barrow.__version__}",
            "_log": data.log,
            "cfg": plain(data.cfg),
            "info": plain(data.info),
            "samplerate": data.samplerate,
            **{dim: plain(names) for dim, names in data.labels.items()},
            "_hdfFileDatasetProperties": ["data", *extra],
        }
        beside = path.with_name(path.name + ".info")
        beside.write_text(json.dumps(facts, indent=1) + "\n")
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _read(path: Path) -> TrialData:
    import h5py

    beside = path.with_name(path.name + ".info")
    if path.suffix not in SUFFIXES or not beside.exists():
        raise InputError(
            f"{str(path)!r} is no object of a container: its {beside.name!r} is missing. A dataset "
            "of an HDF5 file is opened by barrow.ephys.AnalogData(path, name='dataset', ...)."
        )
    facts = json.loads(beside.read_text())
    kind = KINDS[facts["dataclass"]]
    with h5py.File(path, "r") as file:
        table = file["trialdefinition"][()]
        extra = {part: file[part][()] for part in ("avg", "var", "cov") if part in file}
    labels = {dim: facts[dim] for dim in kind.dimord[1:] if facts.get(dim) is not None}
    made = kind(path, facts["samplerate"] or 1.0, table, name="data", **labels)
    for part, value in extra.items():
        setattr(made, part, value)
    made.cfg = StructDict(facts.get("cfg") or {})
    made.info = dict(facts.get("info") or {})
    made._log = str(facts.get("_log", "")).strip().splitlines()
    return made


def _save_zarr(data: TrialData, path: Path, overwrite: bool) -> Path:
    import zarr

    if path.exists() and not overwrite:
        raise OutputError(f"{str(path)!r} exists. Set overwrite=True to replace it.")
    longest = int(data.lengths.max())
    shape = (len(data.lengths), longest, *data.rest_shape)
    trial_bytes = max(1, int(np.prod(shape[1:])) * data.dtype.itemsize)
    chunk = (max(1, min(len(data.lengths), 2**22 // trial_bytes)), *shape[1:])
    array = zarr.create_array(
        str(path),
        shape=shape,
        chunks=chunk,
        dtype=data.dtype,
        dimension_names=["trial", *data.dimord],
        overwrite=overwrite,
    )
    source = data.source()
    for first in range(0, shape[0], chunk[0]):
        block = ((first, min(first + chunk[0], shape[0])), *source.everything[1:])
        array[first : first + chunk[0]] = source.read(block)
    describe_store(data, path)
    return path


def _load_zarr(path: Path) -> TrialData:
    import zarr

    found = zarr.open_array(str(path), mode="r")
    facts: Any = found.attrs.get(ATTRIBUTE)
    if facts is None:
        raise InputError(
            f"{str(path)!r} does not say what its values mean. Open it by "
            "barrow.ephys.AnalogData(path, samplerate=...)."
        )
    kind = KINDS[facts["dataclass"]]
    table = np.array(facts["trialdefinition"], float)
    made = kind(
        open_array(path),
        facts["samplerate"],
        lengths=np.array(facts["lengths"]),
        offsets=table[:, 2],
        **facts["labels"],
    )
    made.cfg, made.info, made._log = StructDict(facts["cfg"]), facts["info"], facts["log"]
    return made
