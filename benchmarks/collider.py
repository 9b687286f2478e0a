"""Does a processor cost more than its work, with no chunk size chosen?

Pairs of muons of opposite charge and missing energy, from a slim file (16 branches) and a wide
one (1016): plain uproot and Numba, coffea at its default and over a sweep of chunk sizes, and
barrow with no chunk size given. What is measured is the run, without imports and starting
Dask's workers. For the rows of coffea, COFFEA_PYTHON names the Python of an environment
that has it::

    python -m venv coffea && coffea/bin/pip install coffea hist uproot numba distributed
    COFFEA_PYTHON=coffea/bin/python python benchmarks/collider.py

Further: the same events as RNTuple and Parquet, and 2000 small files beside a huge one.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from measure import describe_machine, measure, write_json

QUESTION = "Does a processor cost more than its work, with no chunk size chosen?"
SCRIPT = Path(__file__).parent / "peers" / "collider_run.py"
SIZES = {"slim": 3_000_000, "wide": 500_000}
SWEEP = {"slim": (50_000, 500_000, 3_000_000), "wide": (50_000, 500_000)}
EXECUTORS = ("iterative", "futures", "dask")
SMALL_FILES = 2000
PLAIN_STEP = 500_000
# Smaller by so much with --quick.
QUICK = 20
# Made ready for each row, so that fresh memory is not what is measured.
WARM_BYTES = 3 * 2**29


class Row(NamedTuple):
    """One way to do the work."""

    name: str
    python: str
    way: str
    chunk: tuple[str, ...] = ()
    """The chunk size, where one is chosen."""


NEEDED = {
    "slim": ("small", "slim"),
    "wide": ("small", "wide"),
    "formats": ("small", "slim", "rntuple", "parquet"),
    "balance": ("small", "slim"),
}


def make_data(folder: Path, share: int, only: str | None) -> dict[str, Path]:
    """Write the files that are needed and not there yet."""
    from barrow.fields.collider.synthetic import write_nanoaod

    wanted = {
        "small": (folder / "small.root", 2000, {}),
        "slim": (folder / "slim.root", SIZES["slim"] // share, {}),
        "wide": (folder / "wide.root", SIZES["wide"] // share, {"wide": True}),
        "rntuple": (folder / "ntuple.root", SIZES["slim"] // share, {"format": "rntuple"}),
        "parquet": (folder / "slim.parquet", SIZES["slim"] // share, {}),
    }
    for name, (path, events, options) in wanted.items():
        if not path.exists() and (only is None or name in NEEDED[only]):
            print(f"Making {path.name} ...", flush=True)
            write_nanoaod(path, events, cluster=max(10_000, 100_000 // share), **options)
    return {name: path for name, (path, _, _) in wanted.items()}


def run_row(row: Row, path: Path, warm_bytes: int = WARM_BYTES) -> dict:
    """Run one row in a process of its own and return what it took."""
    done = measure([row.python, str(SCRIPT), row.way, str(path), *row.chunk], warm_bytes=warm_bytes)
    for line in done.output.splitlines():
        if line.startswith("TOOK "):
            return {**json.loads(line[5:]), "peak_bytes": done.peak_bytes}
    return {"failed": done.last_words}


def list_rows(kind: str, share: int, coffea: str | None) -> list[Row]:
    """Return all rows of a comparison."""
    rows = [Row("plain", sys.executable, "plain"), Row("barrow", sys.executable, "barrow")]
    # Plain code has a chunk size to choose as well, and is compared at its best.
    middle_size = max(1000, PLAIN_STEP // share)
    rows.append(Row(f"plain, {middle_size:,}", sys.executable, "plain", (str(middle_size),)))
    for executor in EXECUTORS if coffea else ():
        rows.append(Row(f"coffea {executor}, default", str(coffea), executor))
        for size in SWEEP[kind]:
            size = max(1000, size // share)
            name = f"coffea {executor}, {size:,}"
            rows.append(Row(name, str(coffea), executor, (str(size),)))
    return rows


def measure_kind(kind: str, path: Path, share: int, repeats: int, coffea: str | None) -> dict:
    """Return what each row took, and what follows.

    All rows run once. Then those that are compared run again, one after the other in each
    round: of coffea its default and, of each executor, the chunk size that took the least time.
    """
    rows = list_rows(kind, share, coffea)
    warm_bytes = WARM_BYTES // share
    found = {row.name: [run_row(row, path, warm_bytes)] for row in rows}
    again = [
        row for row in rows if not row.chunk or row.way == "plain" or row.name in _best_names(found)
    ]
    for _ in range(repeats - 1):
        for row in again:
            found[row.name].append(run_row(row, path, warm_bytes))
    print(f"\n{kind}: {path.name}\n{'':28} {'wall s':>8} {'CPU s':>8} {'of plain':>9} {'runs':>5}")
    plain = _plain_seconds(found)
    for name, runs in found.items():
        if "failed" in runs[0]:
            print(f"{name:28} failed: {runs[0]['failed']}")
            continue
        wall, cpu = middle(runs, "wall"), middle(runs, "cpu")
        print(f"{name:28} {wall:8.2f} {cpu:8.2f} {cpu / plain:9.2f} {len(runs):5}", flush=True)
    verdict = compare(found)
    print(f"{kind}: {verdict}", flush=True)
    return {"rows": found, **verdict}


def compare(found: dict[str, list[dict]]) -> dict:
    """Return what was asked for, in numbers."""
    came = {name: runs for name, runs in found.items() if "failed" not in runs[0]}
    digests = {run["histograms"] for runs in came.values() for run in runs if "failed" not in run}
    barrow = found["barrow"]
    verdict: dict[str, object] = {
        "same_histograms": len(digests) == 1,
        "cpu_of_plain": middle(barrow, "cpu") / _plain_seconds(found),
    }
    default = found.get("coffea iterative, default")
    if default:
        walls = {name: middle(runs, "wall") for name, runs in came.items() if "coffea" in name}
        best = min(walls, key=walls.__getitem__)
        verdict["cpu_of_coffeas_default_over_barrow"] = middle(default, "cpu") / middle(
            barrow, "cpu"
        )
        verdict["barrow_wall_over_coffeas_best"] = middle(barrow, "wall") / walls[best]
        verdict["coffeas_best"] = best
    return verdict


def _plain_seconds(found: dict[str, list[dict]]) -> float:
    """Return the CPU time of plain code with the better of its chunk sizes."""
    return min(middle(runs, "cpu") for name, runs in found.items() if name.startswith("plain"))


def _best_names(found: dict[str, list[dict]]) -> set[str]:
    """Return, for each executor, the row of the sweep that took the least time."""
    best = set()
    for executor in EXECUTORS:
        walls = {
            name: runs[0]["wall"]
            for name, runs in found.items()
            if name.startswith(f"coffea {executor},") and "failed" not in runs[0]
        }
        best |= {min(walls, key=walls.__getitem__)} if walls else set()
    return best


def middle(runs: list[dict], name: str) -> float:
    return statistics.median(run[name] for run in runs if "failed" not in run)


def compare_formats(paths: dict[str, Path]) -> dict:
    """Return what the same events take in other formats."""
    row = Row("barrow", sys.executable, "barrow")
    found = {name: run_row(row, paths[name]) for name in FORMATS}
    digests = {run.get("histograms") for run in found.values()}
    print(f"\nformats: {'the same' if len(digests) == 1 else 'OTHER'} histograms")
    for name, run in found.items():
        print(f"{name:28} {run.get('wall', -1):8.2f} {run.get('cpu', -1):8.2f}", flush=True)
    return found


FORMATS = ("slim", "rntuple", "parquet")


def balance(paths: dict[str, Path], folder: Path, share: int) -> dict:
    """Return how evenly two workers share a huge file and many small ones."""
    many = folder / "many"
    many.mkdir(exist_ok=True)
    small = [many / f"{number}.root" for number in range(SMALL_FILES // share)]
    for path in small:
        if not path.exists():
            path.symlink_to(paths["small"].resolve())
    fileset = {"huge": [str(paths["slim"])], "small": [str(path) for path in small]}
    one, two = (share_out(fileset, workers) for workers in (1, 2))
    facts = {
        "one": one,
        "two": two,
        "speedup": one["seconds"] / two["seconds"],
        "share_of_ideal": one["seconds"] / two["seconds"] / 2,
    }
    print(f"\n{len(small)} small files and a huge one on 1 and 2 workers: {facts}", flush=True)
    return facts


def share_out(fileset: dict[str, list[str]], workers: int) -> dict:
    """Return what so many workers took, from when the first began until the last ended."""
    import barrow
    from barrow.fields import collider

    def pairs(events):  # in this function, so that it travels to the workers as it is
        import awkward as ak
        import hist

        muons = events.Muon[ak.num(events.Muon) == 2]
        mass = (muons[:, 0] + muons[:, 1]).mass
        return hist.Hist.new.Reg(60, 0, 120).Double().fill(mass)

    with barrow.cluster("local", workers=workers, threads=1) as cluster:
        done = collider.run(pairs, fileset, cluster=cluster, quiet=True)
    # The first spans were measured in this process; from then on all workers were wanted.
    calls = [c for c in done.metrics["calls"] if not c["worker"].startswith(f"{os.getpid()}/")]
    parts = ("open", "read", "decompress", "process")
    spent = [sum(call[f"{part}_seconds"] for part in parts) for call in calls]
    ends = [call["began"] + seconds for call, seconds in zip(calls, spent, strict=True)]
    seconds = max(ends) - min(call["began"] for call in calls)
    return {
        "tasks": done.engine_run.metrics["chunks"],
        "calls": done.metrics["chunks"],
        "seconds": seconds,
        "busy_share": sum(spent) / (workers * seconds),
        "wall": done.metrics["wall_seconds"],
        "histogram": float(done.output.sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer events, one repeat")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, help="folder for the files, kept")
    parser.add_argument("--only", choices=("slim", "wide", "formats", "balance"))
    options = parser.parse_args()
    share, repeats = (QUICK, 1) if options.quick else (1, options.repeats)
    coffea = os.environ.get("COFFEA_PYTHON")
    with tempfile.TemporaryDirectory() as made:
        folder = options.data or Path(made)
        folder.mkdir(exist_ok=True)
        os.environ.setdefault("BARROW_CACHE", str(folder / "cache"))
        os.environ["PYTHONWARNINGS"] = "ignore"
        paths = make_data(folder, share, options.only)
        found: dict[str, object] = {}
        for kind in ("slim", "wide"):
            if options.only in (None, kind):
                found[kind] = measure_kind(kind, paths[kind], share, repeats, coffea)
        if options.only in (None, "formats"):
            found["formats"] = compare_formats(paths)
        if options.only in (None, "balance"):
            found["balance"] = balance(paths, folder, share)
    if options.only is None and not options.quick:
        print(write_json("collider", {"question": QUESTION, **describe_machine(), "runs": found}))


if __name__ == "__main__":
    main()
