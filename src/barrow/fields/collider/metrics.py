"""Numbers of a run: in total, and for each dataset, file and call of the processor.

The keys of coffea mean what they say here: ``chunks`` and ``entries`` are those that were
processed, ``processtime`` is all the time that tasks took, ``bytesread`` are bytes of the files.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barrow.fields.collider.catalogue import Listed
from barrow.fields.collider.skips import Skip
from barrow.fields.collider.tally import Spent, Tally
from barrow.units import format_count

SECONDS = ("open", "read", "decompress", "process", "merge", "cpu")


def summarise(
    tally: Tally,
    files: Sequence[Listed],
    *,
    chunksize: int | None,
    wall_seconds: float,
    ran: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the metrics of a run.

    Parameters
    ----------
    files
        All files that could be opened.
    chunksize
        What was asked for, if anything.
    ran
        What the engine room measured.
    """
    total = _sum(tally.spent)
    busy = sum(total[f"{name}_seconds"] for name in SECONDS if name != "cpu")
    entries, cpu = total["entries"], total["cpu_seconds"]
    metrics = {
        "bytesread": total["read_bytes"],
        "columns": sorted(tally.columns),
        "entries": entries,
        "processtime": busy,
        "chunks": total["chunks"],
        "entries_planned": sum(file.entries for file in files),
        "chunksize": chunksize,
        "cut_chunks": _count_cut(tally.spent, files),
        "entries_skipped": sum(_count(skip) for skip in tally.skips),
        **{key: value for key, value in total.items() if key not in ("entries", "chunks")},
        "wall_seconds": wall_seconds,
        "peak_bytes": ran.get("peak_bytes", 0),
        "engine": ran.get("engine", "inline"),
        "workers": ran.get("workers", 1),
        "kHz": entries / max(1e-9, wall_seconds) / 1e3,
        "kHz_per_core": entries / max(1e-9, cpu) / 1e3,
        "Gbit_per_second": 8e-9 * total["read_bytes"] / max(1e-9, wall_seconds),
        "datasets": _by(tally.spent, "dataset"),
        "files": _by(tally.spent, "path"),
        "calls": [spent._asdict() for spent in tally.spent],
    }
    return {**metrics, "advice": advise(metrics)}


def advise(metrics: Mapping[str, Any]) -> str:
    """Return in a few words where the time went, and what would help.

    Examples
    --------
    >>> spent = {"processtime": 1.0, "read_seconds": 0.1, "decompress_seconds": 0.1,
    ...     "open_seconds": 0.7, "process_seconds": 0.1, "chunks": 4, "entries": 4000}
    >>> advise({**spent, "chunksize": None, "cut_chunks": 0})
    'Opening files took 70 % of the time: 1,000 events for each call. Join small files.'
    >>> print(advise({**spent, "chunksize": 1000, "cut_chunks": 4}))
    4 of 4 calls cut a cluster, which is then decompressed more than once: leave out chunksize=1000.
    """
    call, cut = metrics["entries"] // max(1, metrics["chunks"]), metrics["cut_chunks"]
    if metrics["chunksize"] and 2 * cut > metrics["chunks"]:
        return (
            f"{cut} of {format_count(metrics['chunks'], 'call')} cut a cluster, which is then "
            f"decompressed more than once: leave out chunksize={metrics['chunksize']}."
        )
    busy = max(1e-9, metrics["processtime"])
    share = {n: metrics[f"{n}_seconds"] / busy for n in ("open", "read", "decompress", "process")}
    each = f"{call:,} events for each call"
    worst = max(share, key=lambda name: share[name])
    percent = f"{share[worst]:.0%}".replace("%", " %")
    words = {
        "open": f"Opening files took {percent} of the time: {each}. Join small files.",
        "read": f"Reading took {percent} of the time: {each}. A nearer copy of the files helps.",
        "decompress": f"Decompressing took {percent} of the time: {each}. LZ4 or ZSTD is faster.",
        "process": f"The processor itself took {percent} of the time: {each}.",
    }
    return words[worst]


def _sum(spent: Iterable[Spent]) -> dict[str, Any]:
    total: dict[str, Any] = {"chunks": 0, "entries": 0, "read_bytes": 0, "value_bytes": 0}
    total |= {f"{name}_seconds": 0.0 for name in SECONDS}
    for one in spent:
        total["chunks"] += 1
        total["entries"] += one.stop - one.start
        for name in ("read_bytes", "value_bytes", *(f"{name}_seconds" for name in SECONDS)):
            total[name] += getattr(one, name)
    return total


def _by(spent: Sequence[Spent], name: str) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[Spent]] = {}
    for one in spent:
        groups.setdefault(getattr(one, name), []).append(one)
    return {key: _sum(found) for key, found in groups.items()}


def _count_cut(spent: Iterable[Spent], files: Iterable[Listed]) -> int:
    """Return how many calls begin or end within a cluster."""
    edges = {(file.entry.dataset, file.entry.path): frozenset(file.edges) for file in files}
    return sum(not {one.start, one.stop} <= edges[one.dataset, one.path] for one in spent)


def _count(skip: Skip) -> int:
    return 0 if skip.stop is None else skip.stop - skip.start
