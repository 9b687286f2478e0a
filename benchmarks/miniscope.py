"""Is barrow.miniscope as good as MiniAn, and how much faster, in how much memory?

Movies of minisim, whose truth is known: usual, dense and dim. Both programs work on the same
files, each in a fresh process that is measured from outside, and are scored alike; neither
draws pictures. Then, for barrow alone: do results depend on the chunks, or on the number of
workers?

MINISIM_PYTHON names a Python that has MiniAn and minisim; without it an environment is made
(peers/environments.py), which takes minutes and the network.

    python benchmarks/miniscope.py [--quick] [--cuts] [--only NAME ...]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from measure import describe_machine, measure, write_json
from peers.environments import make_environment

import barrow
from barrow import miniscope

QUESTION = "Is barrow.miniscope as good as MiniAn, and how much faster, in how much memory?"
MOVIES = ("usual", "dense", "noisy")
QUICK_MOVIE = "dense"
"""In the others a small frame has too few cells for MiniAn: it ends where no two are near."""
QUALITY = ("recall", "precision", "iou", "trace", "activity", "motion_rmse")
PEERS = Path(__file__).parent / "peers"
SECONDS, QUICK_SECONDS = 50, 15
SIDE, QUICK_SIDE = 256, 128
CUTS = ({"frame": 128}, {"frame": 384}, {"frame": 1000})
WORKERS = (1, 2)


def find_python() -> str:
    """Return a Python that has MiniAn and minisim; make its environment if there is none."""
    if given := os.environ.get("MINISIM_PYTHON"):
        return given
    folder = make_environment("minian")
    if folder is None:
        raise SystemExit("Without MiniAn and minisim there is nothing to compare with.")
    return str(folder / "bin" / "python")


def make_movie(python: str, to: Path, kind: str, seconds: int, side: int) -> None:
    """Write videos of minisim, and their truth."""
    command = [python, PEERS / "make_minisim.py", to, kind, seconds, side]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def take(command: list[str], timeout_seconds: float) -> dict:
    """Return what a command took, or the last that it said if it failed."""
    found = measure(command, timeout_seconds)
    if found.exit_code:
        return {"failed": found.last_words}
    return {
        "wall_seconds": found.wall_seconds,
        "cpu_seconds": found.cpu_seconds,
        "peak_bytes": found.peak_bytes,
    }


def run_barrow(videos: Path, to: Path, memory: str | None = None, timeout: float = 900) -> dict:
    """Return what barrow took for a movie."""
    limit = [] if memory is None else ["--memory", memory]
    code = "import sys; from barrow.cli.main import main; main(sys.argv[1:])"
    words = ["miniscope", "run", str(videos), "-o", str(to), "--no-pictures", *limit]
    found = take([sys.executable, "-c", code, *words], timeout)
    if "failed" in found:
        raise SystemExit(f"barrow failed: {found['failed']}")
    return found


def load_barrow(to: Path) -> dict:
    """Return what barrow found."""
    found = miniscope.load(to)
    return {name: np.asarray(getattr(found, name)) for name in ("A", "C", "S", "motion")}


def score(videos: Path, found: dict) -> dict:
    """Return how well results fit the truth.

    Also what the activity would score if all of it came a frame earlier or later: a delay that is
    the same everywhere says nothing about how well spikes are told apart.
    """
    with np.load(videos / "truth.npz") as saved:
        truth = SimpleNamespace(**{name: saved[name] for name in saved.files})
    moved = [{**found, "S": np.roll(found["S"], by, axis=1)} for by in (-1, 0, 1)]
    scores = [miniscope.score(one, truth).to_dict() for one in moved]
    return {**scores[1], "activity if moved": max(one["activity"] for one in scores)}


def compare(python: str, videos: Path, place: Path) -> dict[str, dict]:
    """Return the numbers of both programs for one movie."""
    name = videos.name
    out = place / f"{name}-minian.npz"
    peer = take([python, str(PEERS / "minian_run.py"), str(videos), str(out)], 3600)
    if "failed" not in peer:
        with np.load(out) as saved:
            peer |= score(videos, dict(saved))
            steps, seconds = saved["steps"].tolist(), saved["seconds"].tolist()
            peer["steps"] = dict(zip(steps, seconds, strict=True))
    own = run_barrow(videos, place / name)
    own |= score(videos, load_barrow(place / name))
    for row, numbers in (("MiniAn", peer), ("barrow", own)):
        print(f"{name:8}{row:8}" + format_row(numbers), flush=True)
    return {"minian": peer, "barrow": own}


def compare_cuts(videos: Path, place: Path) -> dict[str, dict]:
    """Return how far results of other chunks and workers are from those of a run left alone."""
    miniscope.run(videos, to=place / "alone", quiet=True)
    found, rows = load_barrow(place / "alone"), {}

    def note(name: str) -> None:
        other = load_barrow(place / name)
        rows[name] = {
            key: float(np.abs(other[key] - found[key]).max() / (np.abs(found[key]).max() or 1))
            if other[key].shape == found[key].shape
            else None
            for key in ("A", "C", "S")
        }
        rows[name]["motion_pixels"] = float(np.abs(other["motion"] - found["motion"]).max())
        print(f"{name:24}", rows[name], flush=True)

    for chunks in CUTS:
        name = f"chunks of {chunks['frame']}"
        miniscope.run(videos, to=place / name, chunks=chunks, quiet=True)
        note(name)
    for workers in WORKERS:
        name = f"{workers} workers"
        with barrow.cluster("local", workers=workers, threads=1, memory="2GB") as cluster:
            miniscope.run(videos, to=place / name, cluster=cluster, quiet=True)
        note(name)
    return rows


def format_row(numbers: dict) -> str:
    """Return the numbers of a run as a line of the table."""
    if "failed" in numbers:
        return f" failed: {numbers['failed']}"
    gigabytes = numbers["peak_bytes"] / 1e9
    quality = "".join(f"{numbers[key]:9.3f}" for key in QUALITY)
    return f"{quality}{numbers['cpu_seconds']:9.1f}{numbers['wall_seconds']:9.1f}{gigabytes:9.2f}"


def is_kept(rows: dict[str, dict]) -> dict[str, bool]:
    """Return which promises hold for a movie: as good, eight times faster, a quarter of memory."""
    own, peer = rows["barrow"], rows["minian"]
    if "failed" in peer:
        return {}
    better = {key: own[key] >= peer[key] - 0.005 for key in QUALITY[:-1]}
    better["motion_rmse"] = own["motion_rmse"] <= peer["motion_rmse"] + 0.005
    for key, factor in (("cpu_seconds", 8), ("wall_seconds", 8), ("peak_bytes", 4)):
        better[key] = own[key] * factor <= peer[key]
    return better


def main() -> None:
    """Make movies, run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short and small movie")
    parser.add_argument("--only", nargs="*", choices=MOVIES, default=None)
    parser.add_argument("--cuts", action="store_true", help="chunks and workers compared, too")
    chosen = parser.parse_args()
    python = find_python()
    place = Path(tempfile.mkdtemp())
    rows: dict[str, dict] = {}
    heads = ("recall", "prec.", "IoU", "trace", "activity", "motion", "CPU s", "wall s", "peak GB")
    print(" " * 16 + "".join(f"{head:>9}" for head in heads))
    names = (QUICK_MOVIE,) if chosen.quick else MOVIES
    size = [QUICK_SECONDS, QUICK_SIDE] if chosen.quick else [SECONDS, SIDE]
    try:
        for name in names if chosen.only is None else chosen.only:
            make_movie(python, place / name, name, *size)
            rows[name] = compare(python, place / name, place)
            broken = [key for key, holds in is_kept(rows[name]).items() if not holds]
            print(f"{name:8}not as promised: {', '.join(broken) or 'nothing'}", flush=True)
        if chosen.cuts:
            make_movie(python, place / "cut", MOVIES[0], *size)
            rows["cuts"] = compare_cuts(place / "cut", place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    content = {"question": QUESTION, **describe_machine(), "rows": rows}
    print(write_json("miniscope-quick" if chosen.quick else "miniscope", content))


if __name__ == "__main__":
    main()
