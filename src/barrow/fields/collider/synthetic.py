"""Events that look like NanoAOD, made up: for tutorials, tests and benchmarks.

Pairs of muons from a resonance at 91 GeV over a falling background, jets, missing energy.
The same seed gives the same events, whatever the format and the size of the clusters.
"""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import awkward as ak
import numpy as np

from barrow.errors import InputError

Format = Literal["ttree", "rntuple", "parquet"]

PEAK_GEV = 91.19
WIDTH_GEV = 2.5
PAIR_SHARE = 0.05
# Events are drawn in blocks of this length, so that clusters do not change them.
BLOCK = 10_000
# Further branches of a wide file: collections with so many columns each.
WIDE_COLLECTIONS = 20
WIDE_COLUMNS = 50

Columns = dict[str, Any]


def write_nanoaod(
    path: str | PathLike[str],
    events: int,
    *,
    seed: int = 0,
    cluster: int = 100_000,
    wide: bool = False,
    format: Format | None = None,
) -> Path:
    """Write made-up events to a file.

    Parameters
    ----------
    path
        Ends in ``.root`` or ``.parquet``.
    events
        How many.
    cluster
        Events that are compressed together.
    wide
        Add 1000 more branches, as real NanoAOD has them.
    format
        ``"ttree"`` (by default for ``.root``), ``"rntuple"`` or ``"parquet"``.

    Examples
    --------
    >>> import tempfile
    >>> path = write_nanoaod(f"{tempfile.mkdtemp()}/few.root", 100)
    >>> from barrow import collider
    >>> len(collider.open_events(path))
    100
    """
    path = Path(path)
    kind = format or ("parquet" if path.suffix == ".parquet" else "ttree")
    writers = {"ttree": _write_ttree, "rntuple": _write_rntuple, "parquet": _write_parquet}
    if kind not in writers:
        raise InputError(f"format={format!r} is not known: give one of {', '.join(writers)}.")
    writers[kind](path, _clusters(events, seed, cluster, wide))
    return path


def make_events(events: int, seed: int = 0, *, wide: bool = False) -> Columns:
    """Return columns of made-up events: arrays by the names that NanoAOD gives them."""
    blocks = [
        _make_block(min(BLOCK, events - start), seed, start, wide)
        for start in range(0, events, BLOCK)
    ]
    if not blocks:
        return {name: column[:0] for name, column in _make_block(1, seed, 0, wide).items()}
    return {name: _join([block[name] for block in blocks]) for name in blocks[0]}


def _join(columns: list[Any]) -> Any:
    return (
        np.concatenate(columns) if isinstance(columns[0], np.ndarray) else ak.concatenate(columns)
    )


def _clusters(events: int, seed: int, cluster: int, wide: bool) -> Iterator[Columns]:
    """Yield the columns of one cluster after the other; drawn in blocks of their own."""
    if not events:
        yield make_events(0, seed, wide=wide)
    held: list[Columns] = []
    for start in range(0, events, BLOCK):
        held.append(_make_block(min(BLOCK, events - start), seed, start, wide))
        is_last = start + BLOCK >= events
        while (length := sum(len(block["run"]) for block in held)) >= cluster or (is_last and held):
            joined = {name: _join([block[name] for block in held]) for name in held[0]}
            yield {name: column[:cluster] for name, column in joined.items()}
            rest = {name: column[cluster:] for name, column in joined.items()}
            held = [rest] if length > cluster else []


def _make_block(size: int, seed: int, start: int, wide: bool) -> Columns:
    rng = np.random.default_rng((seed, start))
    columns: Columns = {
        "run": np.full(size, 1, "u4"),
        "luminosityBlock": np.full(size, 1 + start // 1000, "u4"),
        "event": np.arange(start, start + size, dtype="u8"),
        **_make_muons(rng, size),
        **_make_jets(rng, size),
        "MET_pt": rng.exponential(25, size).astype("f4"),
        "MET_phi": rng.uniform(-np.pi, np.pi, size).astype("f4"),
    }
    if wide:
        counts = rng.poisson(1.0, size)
        for number in range(WIDE_COLLECTIONS):
            values = rng.normal(size=counts.sum()).astype("f4")
            collection = f"Extra{number}"
            columns[f"n{collection}"] = counts.astype("u4")
            for column in range(WIDE_COLUMNS - 1):
                columns[f"{collection}_x{column}"] = ak.unflatten(np.roll(values, column), counts)
    return columns


def _make_muons(rng: np.random.Generator, size: int) -> Columns:
    """Return muons: pairs from the resonance in some of the events, any number elsewhere."""
    is_pair = rng.random(size) < PAIR_SHARE
    counts = np.where(is_pair, 2, rng.poisson(1.2, size))
    total = int(counts.sum())
    starts = np.cumsum(counts) - counts
    pt = rng.exponential(20, total) + 3
    eta = rng.normal(0, 1.2, total).clip(-2.4, 2.4)
    phi = rng.uniform(-np.pi, np.pi, total)
    charge = rng.choice(np.array([-1, 1], "i4"), total)
    first, second = starts[is_pair], starts[is_pair] + 1
    mass = rng.normal(PEAK_GEV, WIDTH_GEV, len(first))
    charge[second] = -charge[first]
    # Back to back, with the momentum that gives this mass for the angles that were drawn.
    phi[second] = (phi[first] + 2 * np.pi) % (2 * np.pi) - np.pi
    opening = np.cosh(eta[first] - eta[second]) - np.cos(phi[first] - phi[second])
    pt[second] = mass**2 / (2 * pt[first] * opening)
    values = {
        "pt": pt.astype("f4"),
        "eta": eta.astype("f4"),
        "phi": phi.astype("f4"),
        "mass": np.full(total, 0.10566, "f4"),
        "charge": charge,
    }
    return _as_collection("Muon", values, counts)


def _make_jets(rng: np.random.Generator, size: int) -> Columns:
    counts = rng.poisson(3.0, size)
    total = int(counts.sum())
    values = {
        "pt": (rng.exponential(30, total) + 15).astype("f4"),
        "eta": rng.normal(0, 2, total).astype("f4"),
        "phi": rng.uniform(-np.pi, np.pi, total).astype("f4"),
        "mass": rng.exponential(8, total).astype("f4"),
    }
    return _as_collection("Jet", values, counts)


def _as_collection(name: str, values: dict[str, np.ndarray], counts: np.ndarray) -> Columns:
    columns: Columns = {f"n{name}": counts.astype("u4")}
    for field, column in values.items():
        columns[f"{name}_{field}"] = ak.unflatten(column, counts)
    return columns


def _write_ttree(path: Path, clusters: Iterator[Columns]) -> None:
    import uproot

    with uproot.recreate(path, compression=uproot.ZSTD(3)) as file:
        tree = None
        for columns in clusters:
            grouped = _group(columns)
            if tree is None:
                types = {name: _branch_type(column) for name, column in grouped.items()}
                tree = file.mktree("Events", types)
            tree.extend(grouped)


def _write_rntuple(path: Path, clusters: Iterator[Columns]) -> None:
    import uproot

    with uproot.recreate(path, compression=uproot.ZSTD(3)) as file:
        ntuple = None
        for columns in clusters:
            array = ak.Array(columns)
            if ntuple is None:
                ntuple = file.mkrntuple("Events", array)
            else:
                ntuple.extend(array)


def _write_parquet(path: Path, clusters: Iterator[Columns]) -> None:
    import pyarrow.parquet

    writer = None
    try:
        for columns in clusters:
            table = ak.to_arrow_table(ak.Array(columns), extensionarray=False)
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table, row_group_size=max(1, len(table)))
    finally:
        if writer is not None:
            writer.close()


def _group(columns: Columns) -> Columns:
    """Return collections as records: they then share one branch that counts them."""
    grouped: Columns = {}
    prefixes = {name.partition("_")[0] for name in columns if "_" in name}
    for name, column in columns.items():
        collection, _, field = name.partition("_")
        if isinstance(column, ak.Array):
            grouped.setdefault(collection, {})[field] = column
        elif name[1:] not in prefixes:
            grouped[name] = column
    return {
        name: ak.zip(column) if isinstance(column, dict) else column
        for name, column in grouped.items()
    }


def _branch_type(column: Any) -> Any:
    return column.dtype if isinstance(column, np.ndarray) else ak.type(column).content
