"""Does a movie larger than the memory allowed become cells within it, as quickly as a small one?

A simulated movie of 608 × 608 pixels, `memory="4GB"`, in processes that are measured from
outside. Its cells are known: the results are scored. Beside it a movie an eighth of that size
with the same limit, for the time that a gigabyte takes.

    python benchmarks/miniscope_large.py [--gigabytes 8.5] [--memory 4GB]
"""

import argparse
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from measure import describe_machine, write_json
from miniscope import load_barrow, run_barrow

from barrow import miniscope
from barrow.units import parse_bytes

SIDE, CELLS = 608, 200
SMALL = 1 / 8
FRAMES_AT_ONCE = 256


def make_movie(path: Path, gigabytes: float) -> Any:
    """Write a movie as a NumPy file, a few frames at a time, and return its truth."""
    frames = int(gigabytes * 1e9 / SIDE**2)
    source, truth = miniscope.simulate(frames=frames, height=SIDE, width=SIDE, cells=CELLS)
    shape = tuple(source.lengths.values())
    np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape).flush()
    parts = [(path, source, start) for start in range(0, frames, FRAMES_AT_ONCE)]
    with ProcessPoolExecutor() as pool:
        list(pool.map(write_frames, *zip(*parts, strict=True)))
    return truth


def write_frames(path: Path, source: Any, start: int) -> None:
    """Write some frames of a simulated movie to their place in a file."""
    stop = min(start + FRAMES_AT_ONCE, source.lengths["frame"])
    out = np.lib.format.open_memmap(path, mode="r+")
    out[start:stop] = source.read(((start, stop), *source.everything[1:]))
    out.flush()


def take(gigabytes: float, memory: str, place: Path) -> dict[str, Any]:
    """Return what a movie of so many gigabytes took, and how good the result is."""
    path = place / "movie.npy"
    truth = make_movie(path, gigabytes)
    found: dict[str, Any] = run_barrow(path, place / "found", memory, 7200)
    size = path.stat().st_size
    found |= {
        "gigabytes": size / 1e9,
        "seconds per gigabyte": found["wall_seconds"] / size * 1e9,
        "peak ÷ limit": found["peak_bytes"] / parse_bytes(memory),
        **miniscope.score(load_barrow(place / "found"), truth).to_dict(),
    }
    shutil.rmtree(place / "found")
    path.unlink()
    return found


def main() -> None:
    """Make both movies, run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=8.5)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--folder", help="where there is room for three times that")
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="barrow-large-", dir=given.folder))
    rows = {}
    try:
        for name, share in (("small", SMALL), ("large", 1.0)):
            rows[name] = take(share * given.gigabytes, given.memory, place)
            print(f"{name:8}", rows[name], flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    content = {"question": __doc__, **describe_machine(), "memory": given.memory, "rows": rows}
    print(write_json("miniscope-large", content))


if __name__ == "__main__":
    main()
