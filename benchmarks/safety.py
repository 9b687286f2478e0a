"""What do the fence, the ledger, its checksums and the guard of workers cost?

The same run with them and without, in turns: a few functions of NumPy on 40 chunks of 8 MB,
70 ms and more each, from a .npy file to a store; in line, in threads, and on two workers. Without
means that they are taken out of the running program here; no option does that.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
from measure import describe_machine, write_json

import barrow
from barrow.recording.record import RecordWriter
from barrow.running import task
from barrow.sites import processes

CHUNKS, SIDE = 40, 1000
ENGINES = {"inline": (1, 1), "threads": (1, 2), "dask": (2, 1)}


def compute(x):
    return np.sqrt(np.abs(np.sin(x) * np.cos(x)) + np.exp(-x)).astype("f4")


def take_out() -> dict[str, object]:
    """Take fence and checksums out of this process; return what was there."""
    before = {"around": task.FENCE.around, "checksum": task.checksum}
    task.FENCE.around = lambda _: nullcontext()
    task.checksum = lambda _: None
    return before


def take_out_there() -> None:
    take_out()


def put_back(before: dict[str, object]) -> None:
    task.FENCE.around = before["around"]
    task.checksum = before["checksum"]


@contextmanager
def without_safety() -> Iterator[None]:
    """Take everything out that keeps a run safe, in this process."""
    before, note = take_out(), RecordWriter.note_chunks
    RecordWriter.note_chunks = lambda *_: None
    try:
        yield
    finally:
        put_back(before)
        RecordWriter.note_chunks = note


@contextmanager
def two_clusters() -> Iterator[dict[bool, object]]:
    """Open workers with all that keeps them safe, and others without."""
    with barrow.cluster("local", workers=2, threads=1, memory="1GB") as safe:
        guard, processes.GUARD_SECONDS = processes.GUARD_SECONDS, 1e6
        with barrow.cluster("local", workers=2, threads=1, memory="1GB") as bare:
            bare.client.run(take_out_there)
            yield {True: safe, False: bare}
        processes.GUARD_SECONDS = guard


def run_once(plan, clusters, is_safe: bool) -> tuple[float, float]:
    """Return the seconds of one run: wall, and CPU of all its processes."""
    shutil.rmtree(plan.options["to"], ignore_errors=True)
    cluster = clusters[is_safe] if plan.engine == "dask" else None
    with nullcontext() if is_safe else without_safety():
        cpu, began = cpu_seconds(cluster), time.perf_counter()
        barrow.run(plan, cluster=cluster, quiet=True)
        return time.perf_counter() - began, cpu_seconds(cluster) - cpu


def cpu_seconds(cluster) -> float:
    """Return the CPU time of this process, and of the workers of a cluster."""
    pids = [] if cluster is None else [worker.pid for worker in cluster.workers]
    times = [psutil.Process(pid).cpu_times() for pid in (os.getpid(), *pids)]
    return sum(t.user + t.system for t in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    results = {}
    print(f"{'':10} {'ms a chunk':>10} {'wall: safe':>11} {'bare':>7} {'more':>7} ", end="")
    print(f"{'CPU: safe':>10} {'bare':>7} {'more':>7}")
    with tempfile.TemporaryDirectory(prefix="barrow-safety-") as name, two_clusters() as clusters:
        source = Path(name) / "source.npy"
        np.save(source, np.random.default_rng(0).random((CHUNKS, SIDE, SIDE)))
        made = barrow.plan(
            compute, source, to=Path(name) / "out.zarr", quiet=True, memory="2GB", cluster=False
        ).with_chunks(dim_0=1, dim_1=SIDE, dim_2=SIDE)
        for engine, (workers, threads) in ENGINES.items():
            plan = replace(made, engine=engine, workers=workers, threads=threads)
            plan = replace(plan, options={**plan.options, "cluster": None})
            found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
            for turn in range(-1, repeats):
                # In turns, so that what the machine does meanwhile meets both alike.
                for is_safe in (True, False) if turn % 2 else (False, True):
                    once = run_once(plan, clusters, is_safe)
                    if turn >= 0:  # the first time everything is cold
                        found[is_safe].append(once)
            results[engine] = row = summarise(found, workers * threads)
            print(
                f"{engine:10} {row['chunk_ms']:10.0f} {row['wall'][0]:11.2f} {row['wall'][1]:7.2f} "
                f"{row['wall'][2]:7.1%} {row['cpu'][0]:10.2f} {row['cpu'][1]:7.2f} "
                f"{row['cpu'][2]:7.1%}",
                flush=True,
            )
    facts = {"question": __doc__.splitlines()[0], **describe_machine()}
    print("kept in", write_json("safety", {**facts, "results": results}).name)


def summarise(found: dict[bool, list[tuple[float, float]]], slots: int) -> dict[str, object]:
    """Return medians with and without, and the median of the ratios of neighbours."""
    row: dict[str, object] = {"runs": {str(key): value for key, value in found.items()}}
    for index, name in enumerate(("wall", "cpu")):
        safe = [once[index] for once in found[True]]
        bare = [once[index] for once in found[False]]
        more = statistics.median(a / b - 1 for a, b in zip(safe, bare, strict=True))
        row[name] = [statistics.median(safe), statistics.median(bare), more]
    wall = row["wall"]
    assert isinstance(wall, list)
    row["chunk_ms"] = 1000 * wall[1] * slots / CHUNKS
    return row


if __name__ == "__main__":
    main()
