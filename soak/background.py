"""Does the background of a calcium movie fit workers of 1 GB, as a user would write it?

The step at which MiniAn ends in ``KilledWorker`` with such workers: of a movie Y of 66 MB,
with the footprints A of 60 cells and their traces C, the residual Y - A·C, clipped at zero, is
stored; its mean over time is the background b, and least squares give its strength f in each
frame. As one expression the residual takes 530 MB, and twice that on the way.

The memory of every worker is looked at from outside, every 10 ms.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import describe_machine, write_json
from soak.faults import RESULTS
from soak.watching import Watcher

FRAMES, HEIGHT, WIDTH, UNITS = 500, 360, 368, 60
WORKERS, MEMORY_BYTES = 2, 10**9


def subtract(movie, footprints, traces):
    """Return what of a movie its cells do not explain."""
    return np.clip(movie - np.einsum("uf,uhw->fhw", traces, footprints, optimize=True), 0, None)


def add_frames(residual):
    return residual.sum(axis=0)


def fit(residual, background):
    """Return how strong the background is in each frame, by least squares."""
    flat = residual.reshape(len(residual), -1)
    return np.linalg.lstsq(background.reshape(-1, 1), flat.T, rcond=None)[0][0]


def make_movie(folder: Path) -> None:
    """Write a movie of round cells that flicker, over a background that breathes."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    footprints = np.stack(
        [
            np.exp(-((y - rng.uniform(0, HEIGHT)) ** 2 + (x - rng.uniform(0, WIDTH)) ** 2) / 50)
            for _ in range(UNITS)
        ]
    )
    traces = rng.gamma(1.0, 20.0, (UNITS, FRAMES))
    glow = 30 + 20 * np.sin(y / 90) * np.cos(x / 70)
    movie = np.empty((FRAMES, HEIGHT, WIDTH), "u1")
    for frame in range(FRAMES):
        cells = np.tensordot(traces[:, frame], footprints, 1)
        noise = rng.normal(0, 3, (HEIGHT, WIDTH))
        movie[frame] = np.clip(glow * (1 + 0.2 * np.sin(frame / 40)) + cells + noise, 0, 255)
    np.save(folder / "movie.npy", movie)
    np.save(folder / "footprints.npy", footprints)
    np.save(folder / "traces.npy", traces)


def update_background(folder: Path) -> dict[str, object]:
    """Do it with barrow; this runs in a process of its own."""
    import barrow

    image = ("height", "width")
    with barrow.cluster("local", workers=WORKERS, threads=1, memory=MEMORY_BYTES) as cluster:
        began = time.perf_counter()
        movie = barrow.open(folder / "movie.npy", dims=("frame", *image))
        footprints = barrow.open(folder / "footprints.npy", dims=("unit", *image))
        traces = barrow.open(folder / "traces.npy", dims=("unit", "frame"))
        residual = barrow.map(
            subtract, movie, footprints, traces, to=folder / "residual.zarr", quiet=True
        )
        stored = barrow.open(residual, dims=("frame", *image))
        background = barrow.reduce(add_frames, stored, whole=image, quiet=True) / FRAMES
        strength = barrow.map(fit, stored, barrow.open(background, dims=image), quiet=True)
        seconds = time.perf_counter() - began
        np.save(folder / "background.npy", background)
        np.save(folder / "strength.npy", strength)
        metrics = json.loads((folder / "residual.zarr" / ".barrow" / "metrics.json").read_text())
        return {
            "seconds": seconds,
            "workers_lost": len(cluster.exits),
            "chunks": metrics["chunks"],
            "split": metrics["split"],
            "peak_task_bytes": metrics["peak_task_bytes"],
        }


def compare(folder: Path) -> dict[str, float]:
    """Return how far the results are from those of plain NumPy, relative to the largest value."""
    import zarr

    movie = np.load(folder / "movie.npy", mmap_mode="r")
    footprints, traces = np.load(folder / "footprints.npy"), np.load(folder / "traces.npy")
    stored = zarr.open_array(folder / "residual.zarr", mode="r")
    total, far, largest = np.zeros((HEIGHT, WIDTH)), 0.0, 0.0
    plain = []
    for start in range(0, FRAMES, 50):
        block = slice(start, start + 50)
        residual = subtract(movie[block], footprints, traces[:, block])
        far = max(far, float(np.abs(stored[block] - residual).max()))
        largest = max(largest, float(residual.max()))
        total += add_frames(residual)
        plain.append(residual.reshape(len(residual), -1))
    background = total / FRAMES
    strength = np.concatenate(
        [np.linalg.lstsq(background.reshape(-1, 1), r.T, rcond=None)[0][0] for r in plain]
    )
    return {
        "residual": far / largest,
        "background": _distance(np.load(folder / "background.npy"), background),
        "strength": _distance(np.load(folder / "strength.npy"), strength),
    }


def _distance(found: np.ndarray, right: np.ndarray) -> float:
    assert found.shape == right.shape
    return float(np.abs(found - right).max() / np.abs(right).max())


def main() -> int:
    """Make the movie, run it while it is watched, compare, and keep the numbers."""
    if len(sys.argv) > 1:
        print(json.dumps(update_background(Path(sys.argv[1]))))
        return 0
    with tempfile.TemporaryDirectory(prefix="barrow-background-") as name:
        folder = Path(name)
        make_movie(folder)
        command = [sys.executable, "-m", "soak.background", name]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        with Watcher(process.pid) as watcher:
            output, _ = process.communicate(timeout=600)
        if process.returncode:
            print(f"it ended with exit code {process.returncode}")
            return 1
        found = {**json.loads(output), **watcher.facts(), "off_by": compare(folder)}
    worst = max(found["off_by"].values())
    is_good = found["worst_worker_bytes"] < MEMORY_BYTES and worst < 1e-12
    print(
        f"movie {FRAMES * HEIGHT * WIDTH / 1e6:.0f} MB, {WORKERS} workers of "
        f"{MEMORY_BYTES / 1e6:.0f} MB: {found['seconds']:.1f} s, {found['chunks']} chunks, "
        f"{found['split']} split, {found['workers_lost']} workers lost\n"
        f"most that a worker held, of {found['looks']} looks: "
        f"{found['worst_worker_bytes'] / 1e6:.0f} MB\n"
        f"off from NumPy by at most {worst:.1e} of the largest value"
    )
    facts = {"question": __doc__.splitlines()[0], **describe_machine()}
    write_json("background", {**facts, **found, "is_good": is_good}, RESULTS)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
