"""Does `barrow.what_if` foresee what more workers really bring?

Six kinds of work, each done by 1, 2 and 4 worker processes on this machine. From the record with
1 worker the time with 2 is foreseen, and from the record with 2 that with 4, which have to share
the cores: the simulation is told how many there are. Beside it, what people reckon without a
simulation: half the time for twice the workers. Also: how long it takes to simulate 10 million
chunks on 10,000 workers.

Run it on a machine that does nothing else: what others take away is in the records, too.
"""

import argparse
import os
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array
import numpy as np
import zarr
from measure import describe_machine, write_json

import barrow
from barrow.simulating.load import Load, Stage
from barrow.simulating.simulate import simulate

WORKERS = (1, 2, 4)
TASK_SECONDS = 0.055
MEDIAN_ERROR, WORST_ERROR, LONGEST_SECONDS = 0.10, 0.25, 30.0
"""What is hoped for."""


def compute(x: np.ndarray, rounds: int) -> np.ndarray:
    """Keep a core busy with an array that fits its cache."""
    for _ in range(rounds):
        x = np.sin(x)
    return x


def count_rounds(x: np.ndarray) -> int:
    """Return how many of them take as long as a task should: processors differ by several times."""
    compute(x, 20)
    began = time.perf_counter()
    compute(x, 100)
    return max(1, round(100 * TASK_SECONDS / (time.perf_counter() - began)))


def squeeze(seed: int) -> int:
    """Keep a core busy without the interpreter's lock."""
    data = np.random.default_rng(seed).integers(0, 16, 2_000_000, "u1").tobytes()
    return len(zlib.compress(data, 6))


def add_one(number: int) -> int:
    return number + 1


def spin(seconds: float) -> float:
    """Keep a core busy for so many seconds of CPU."""
    began = time.thread_time()
    total = 0.0
    while time.thread_time() - began < seconds:
        total += sum(range(2000))
    return total


def count_bright(block: np.ndarray) -> int:
    return int((block > 100).sum())


def in_rows(plan: barrow.Plan) -> barrow.Plan:
    """Return a plan with a chunk for each step along the first dimension."""
    first, *others = plan.lengths
    return plan.with_chunks(**{first: 1}, **{dim: plan.lengths[dim] for dim in others})


def list_work(place: Path, scale: float) -> dict[str, Any]:
    """Return the kinds of work by their names: functions, and plans of barrow's own."""
    many = max(4, round(24 * scale))
    rng = np.random.default_rng(0)
    array = np.random.default_rng(1).random((8 * many, 60_000), "f4")
    shape = (20 * many, 2000, 4000)
    image = zarr.create_array(
        store=place / "image.zarr", shape=shape, chunks=(1, *shape[1:]), dtype="u1"
    )
    for plane in range(shape[0]):
        image[plane] = rng.integers(80, 120, shape[1:], "u1")
    os.sync()  # plans measure: what is still being written would disturb them
    uneven = (scale * rng.lognormal(-1.6, 0.9, 50)).tolist()
    tasks = round(8000 * scale)

    def gil_free(client: Any) -> None:
        client.gather(client.map(squeeze, range(many * 4), pure=False))

    def tiny(client: Any) -> None:
        client.gather(client.map(add_one, range(tasks), pure=False))

    def unlike(client: Any) -> None:
        client.gather(client.map(spin, uneven, pure=False))

    def reduction() -> None:
        x = dask.array.random.default_rng(0).random((many * 8, 2_000_000), chunks=(1, 2_000_000))
        dask.compute(dask.array.sqrt(x).std(), x.max())

    return {
        "compute-bound NumPy": in_rows(
            barrow.plan(compute, array, name="compute", kwargs={"rounds": count_rounds(array[:1])})
        ),
        "without the interpreter's lock": gil_free,
        "reading Zarr": in_rows(barrow.plan(count_bright, image, combine=int.__add__, name="read")),
        "many tiny tasks": tiny,
        "uneven tasks": unlike,
        "a reduction": reduction,
    }


def study(name: str, work: Callable[..., Any] | barrow.Plan, place: Path, repeats: int) -> list:
    """Measure work with all numbers of workers, and foresee each from the one before."""
    folder = place / name.replace(" ", "-").replace("'", "")
    truth = barrow.scaling(work, WORKERS, repeats, memory="800MB", folder=folder, quiet=True)
    cores = len(os.sched_getaffinity(0))
    rows = []
    for before, after in zip(truth.settings[:-1], truth.settings[1:], strict=True):
        turn = before.taken.repeats.index(before.taken.typical) + 1
        measured = folder / f"{before.workers}-workers-{turn}"
        found = barrow.what_if(measured, after.workers, cores=cores)
        # A record has a beginning and an end that are not part of the work.
        around = found.measured_seconds - before.taken.typical.seconds
        predicted, real = found.seconds - around, after.taken.seconds
        reckoned = before.taken.seconds * before.workers / after.workers
        rows.append(
            {
                "work": name,
                "from_workers": before.workers,
                "to_workers": after.workers,
                "before_seconds": before.taken.typical.seconds,
                "predicted_seconds": predicted,
                "low_seconds": found.points[0].low_seconds - around,
                "high_seconds": found.points[0].high_seconds - around,
                "real_seconds": [repeat.seconds for repeat in after.taken.repeats],
                "error": abs(predicted / real - 1),
                "error_of_halving": abs(reckoned / real - 1),
                "tasks": found.tasks,
                "limit": found.points[0].scarce,
            }
        )
        print(
            f"{name:32} {before.workers} → {after.workers}: {before.taken.seconds:6.2f} s, "
            f"foreseen {predicted:6.2f} s, really {real:6.2f} s: {abs(predicted / real - 1):5.1%} "
            f"(halving: {abs(reckoned / real - 1):5.1%})",
            flush=True,
        )
    return rows


def simulate_many() -> dict[str, float]:
    """Return how long it takes to simulate 10 million chunks on 10,000 workers."""
    rng = np.random.default_rng(0)
    load = Load(
        rng.gamma(4.0, 0.25, 1000),
        wait_seconds=rng.exponential(0.1, 1000),
        disk_bytes=np.full(1000, 1e7),
        tasks=10_000_000,
        scheduler_seconds=1e-5,
    )
    found = {}
    stages = {
        "on their own": Stage(10_000),
        "sharing cores and disk": Stage(10_000, cores=8000, disk_bytes_per_second=80e9),
    }
    for name, stage in stages.items():
        began = time.perf_counter()
        simulate(load, stage)
        found[name] = time.perf_counter() - began
        print(f"10 million chunks on 10,000 workers {name}: {found[name]:.1f} s", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the work; 1: 10 to 20 s each")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="part of a name")
    parser.add_argument("--keep", type=Path, help="folder for the records")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = given.keep or Path(scratch)
        rows = []
        for name, work in list_work(Path(scratch), given.scale).items():
            if given.only is None or given.only in name:
                rows += study(name, work, place, given.repeats)
    errors = [row["error"] for row in rows]
    middle, worst = statistics.median(errors), max(errors)
    simulated = simulate_many() if given.only is None else {}
    is_good = middle <= MEDIAN_ERROR and worst <= WORST_ERROR
    is_good = is_good and all(seconds <= LONGEST_SECONDS for seconds in simulated.values())
    print(
        f"Error of the median {middle:.1%}, at worst {worst:.1%}: {'' if is_good else 'NOT '}good."
    )
    if given.only is None and given.scale >= 1:
        write_json(
            "what_if",
            {
                "question": __doc__,
                **describe_machine(),
                "median_error": middle,
                "worst_error": worst,
                "simulated_seconds": simulated,
                "rows": rows,
            },
        )


if __name__ == "__main__":
    main()
