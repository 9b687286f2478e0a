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
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import describe_machine, write_json

QUESTION = "Does a processor cost more than its work, with no chunk size chosen?"
SCRIPT = Path(__file__).parent / "peers" / "collider_run.py"
SIZES = {"slim": 3_000_000, "wide": 500_000}
SWEEP = {"slim": (50_000, 500_000, 3_000_000), "wide": (50_000, 500_000)}
EXECUTORS = ("iterative", "futures", "dask")
SMALL_FILES = 2000
# Smaller by so much with --quick.
QUICK = 20


def make_data(folder: Path, share: int) -> dict[str, Path]:
    """Write the files that are not there yet."""
    from barrow.fields.collider.synthetic import write_nanoaod

    wanted = {
        "small": (folder / "small.root", 2000, {}),
        "slim": (folder / "slim.root", SIZES["slim"] // share, {}),
        "wide": (folder / "wide.root", SIZES["wide"] // share, {"wide": True}),
        "rntuple": (folder / "ntuple.root", SIZES["slim"] // share, {"format": "rntuple"}),
        "parquet": (folder / "slim.parquet", SIZES["slim"] // share, {}),
    }
    for path, events, options in wanted.values():
        if not path.exists():
            print(f"Making {path.name} ...", flush=True)
            write_nanoaod(path, events, cluster=max(10_000, 100_000 // share), **options)
    return {name: path for name, (path, _, _) in wanted.items()}


def run_row(python: str, *arguments: object) -> dict:
    """Run one row in a process of its own and return what it took."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [python, str(SCRIPT), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=900,
        env=environment,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith("TOOK "):
            return json.loads(line[5:])
    return {"failed": (done.stderr or done.stdout).strip().splitlines()[-1][:300]}


def list_rows(kind: str, share: int, coffea: str | None) -> list[tuple[str, str, tuple]]:
    """Return name, Python and arguments of each row."""
    rows: list[tuple[str, str, tuple]] = [
        ("plain", sys.executable, ("plain",)),
        ("barrow", sys.executable, ("barrow",)),
    ]
    if coffea:
        for executor in EXECUTORS:
            rows.append((f"coffea {executor}, default", coffea, (executor,)))
            for size in SWEEP[kind]:
                size = max(1000, size // share)
                rows.append((f"coffea {executor}, {size:,}", coffea, (executor, size)))
    return rows


def measure_kind(kind: str, path: Path, share: int, repeats: int, coffea: str | None) -> dict:
    """Return what each row took, several times, one row after the other in each round."""
    rows = list_rows(kind, share, coffea)
    found: dict[str, list[dict]] = {name: [] for name, _, _ in rows}
    for _ in range(repeats):
        for name, python, (way, *rest) in rows:
            found[name].append(run_row(python, way, path, *rest))
    print(f"\n{kind}: {path.name}\n{'':28} {'wall s':>8} {'CPU s':>8} {'of plain':>9}")
    plain = middle(found["plain"], "cpu")
    for name, runs in found.items():
        if "failed" in runs[0]:
            print(f"{name:28} failed: {runs[0]['failed']}")
            continue
        wall, cpu = middle(runs, "wall"), middle(runs, "cpu")
        same = "" if runs[0]["sums"] == found["plain"][0]["sums"] else "  OTHER HISTOGRAMS"
        print(f"{name:28} {wall:8.2f} {cpu:8.2f} {cpu / plain:9.2f}{same}", flush=True)
    return found


def middle(runs: list[dict], name: str) -> float:
    return statistics.median(run[name] for run in runs)


def compare_formats(paths: dict[str, Path]) -> dict:
    """Return what the same events take in other formats."""
    found = {name: run_row(sys.executable, "barrow", paths[name]) for name in FORMATS}
    sums = [found[name].get("sums") for name in FORMATS]
    print(f"\nformats: {'the same' if sums.count(sums[0]) == len(sums) else 'OTHER'} histograms")
    for name, run in found.items():
        print(f"{name:28} {run.get('wall', -1):8.2f} {run.get('cpu', -1):8.2f}", flush=True)
    return found


FORMATS = ("slim", "rntuple", "parquet")


def balance(paths: dict[str, Path], folder: Path, share: int) -> dict:
    """Return how evenly two workers share a huge file and many small ones."""
    import barrow
    from barrow.fields import collider

    many = folder / "many"
    many.mkdir(exist_ok=True)
    small = [many / f"{number}.root" for number in range(SMALL_FILES // share)]
    for path in small:
        if not path.exists():
            path.symlink_to(paths["small"])
    fileset = {"huge": [str(paths["slim"])], "small": [str(path) for path in small]}

    def pairs(events):  # in this function, so that it travels to the workers as it is
        import awkward as ak
        import hist

        muons = events.Muon[ak.num(events.Muon) == 2]
        mass = (muons[:, 0] + muons[:, 1]).mass
        return hist.Hist.new.Reg(60, 0, 120).Double().fill(mass)

    with barrow.cluster("local", workers=2, threads=1) as cluster:
        done = collider.run(pairs, fileset, cluster=cluster, quiet=True)
    # The first spans were measured here; from then on both workers were wanted.
    busy: dict[str, float] = {}
    ends: dict[str, float] = {}
    begins = []
    for call in done.metrics["calls"]:
        if call["worker"].partition("/")[0] == str(os.getpid()):
            continue
        spent = sum(call[f"{n}_seconds"] for n in ("open", "read", "decompress", "process"))
        busy[call["worker"]] = busy.get(call["worker"], 0.0) + spent
        ends[call["worker"]] = max(ends.get(call["worker"], 0.0), call["began"] + spent)
        begins.append(call["began"])
    span = max(ends.values()) - min(begins)
    ideal = sum(busy.values()) / (2 * span)
    facts = {
        "tasks": done.engine_run.metrics["chunks"],
        "calls": done.metrics["chunks"],
        "busy_seconds": sorted(busy.values()),
        "share_of_ideal": ideal,
        "wall": done.metrics["wall_seconds"],
    }
    print(f"\n{len(small)} small files and a huge one on 2 workers: {facts}", flush=True)
    return facts


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
        paths = make_data(folder, share)
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
