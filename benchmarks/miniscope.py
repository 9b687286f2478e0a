"""Is barrow.miniscope as good as MiniAn, and how much faster, in how much memory?

Movies whose truth is known: three of minisim (MINISIM_PYTHON names a Python that has it), or
of barrow's own simulation; and one that is larger than the memory it may use. Each is worked
on by a fresh process, measured from outside. MiniAn's numbers are those of one run on such a
movie of minisim, 1000 × 256 × 256 with 60 cells, on the machine that these are from.

    python benchmarks/miniscope.py [--quick] [--large GIGABYTES]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from measure import describe_machine, measure, write_json

QUESTION = "Is barrow.miniscope as good as MiniAn, and how much faster, in how much memory?"
MINIAN = {
    "recall": 1.00,
    "precision": 1.00,
    "iou": 0.82,
    "trace": 0.98,
    "activity": 0.67,
    "motion_rmse": 0.12,
    "cpu_seconds": 389.0,
    "wall_seconds": 391.0,
    "peak_bytes": int(4.6e9),
}
OWN = {
    "usual": {"seed": 1},
    "dense": {"seed": 2, "cells": 120},
    "noisy": {"seed": 3, "noise": 0.5},
}
HERE = Path(__file__).parent
LARGE_SIDE = 608


def make_own(folder: Path, **settings: int) -> None:
    """Write a movie of barrow's own simulation, and its truth."""
    from barrow import miniscope

    movie, truth = miniscope.simulate(**settings)
    folder.mkdir(parents=True)
    miniscope.write_video(movie, folder / "msCam1.avi")
    np.savez(folder / "truth.npz", A=truth.A, C=truth.C, S=truth.S, motion=truth.motion)


def make_large(path: Path, gigabytes: float) -> None:
    """Write a movie as a NumPy file, a few frames at a time."""
    from barrow.fields.miniscope.simulating import Scene, render

    frames = int(gigabytes * 1e9 / LARGE_SIDE**2)
    scene = Scene(frames=frames, height=LARGE_SIDE, width=LARGE_SIDE, cells=200)
    shape = (frames, LARGE_SIDE, LARGE_SIDE)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape)
    for start in range(0, frames, 256):
        out[start : start + 256] = render(scene, start, min(frames, start + 256))
    out.flush()


def run_once(videos: Path, to: Path, memory: str | None, timeout: float) -> dict:
    """Return what a run took."""
    limit = [] if memory is None else ["--memory", memory]
    code = "import sys; from barrow.cli.main import main; main(sys.argv[1:])"
    words = ["miniscope", "run", str(videos), "-o", str(to), *limit]
    found = measure([sys.executable, "-c", code, *words], timeout)
    if found.exit_code:
        raise SystemExit(found.output)
    return {
        "wall_seconds": found.wall_seconds,
        "cpu_seconds": found.cpu_seconds,
        "peak_bytes": found.peak_bytes,
    }


def score(videos: Path, to: Path) -> dict:
    """Return how well the results fit the truth."""
    from barrow import miniscope

    result = miniscope.load(to)
    with np.load(videos / "truth.npz") as saved:
        truth = SimpleNamespace(**{name: saved[name] for name in saved.files})
    names = ("A", "C", "S", "motion")
    found = {name: np.asarray(getattr(result, name)) for name in names}
    return miniscope.score(found, truth).to_dict()


def main() -> None:
    """Make movies, run, print and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="one short movie")
    parser.add_argument("--large", type=float, default=8.5, help="gigabytes; 0 for none")
    parser.add_argument("--repeats", type=int, default=2)
    chosen = parser.parse_args()
    place = Path(tempfile.mkdtemp())
    python = os.environ.get("MINISIM_PYTHON")
    rows: dict[str, list[dict]] = {}
    try:
        for name, settings in list(OWN.items())[: 1 if chosen.quick else None]:
            videos = place / name
            if python:
                seconds = "15" if chosen.quick else "50"
                make = [python, str(HERE / "peers" / "make_minisim.py"), str(videos), name, seconds]
                subprocess.run(make, check=True)
            else:
                make_own(videos, **settings, **({"frames": 300} if chosen.quick else {}))
            rows[name] = []
            for repeat in range(1 if chosen.quick else chosen.repeats):
                to = place / f"{name}-{repeat}"
                row = run_once(videos, to, None, 1200)
                rows[name].append({**row, **score(videos, to)})
                print(name, json.dumps({k: round(v, 3) for k, v in rows[name][-1].items()}))
        if chosen.large and not chosen.quick:
            path = place / "large.npy"
            make_large(path, chosen.large)
            rows["large"] = [run_once(path, place / "large", "4GB", 7200)]
            rows["large"][0]["gigabytes"] = path.stat().st_size / 1e9
            print("large", json.dumps(rows["large"][0]))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    content = {
        "question": QUESTION,
        **describe_machine(),
        "movies": "minisim" if python else "barrow.miniscope.simulate",
        "minian_elsewhere": MINIAN,
        "rows": rows,
    }
    print(write_json("miniscope-quick" if chosen.quick else "miniscope", content))


if __name__ == "__main__":
    main()
