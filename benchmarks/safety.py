"""What do the fence, the ledger, its checksums and the guard of workers cost?

The same run with them and without, in turns: a few functions of NumPy on 40 chunks of 8 MB,
70 ms and more each, from a .npy file to a store; in line, in threads, and on two workers. Without
means that they are taken out of the running program here; no option does that. Every turn has a
second run without them: what two equal runs differ by is what this machine cannot tell.
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
from barrow.sites import worker_process

CHUNKS, SIDE = 40, 1000
WHATS = ("wall", "CPU")
KINDS = ("safe", "bare", "bare again")
ENGINES = {"inline": (1, 1), "threads": (1, 2), "dask": (2, 1)}


def compute(x):
    y = np.sin(x)
    for ufunc in (np.cos, np.exp, np.sin, np.cos, np.exp):
        ufunc(y, out=y)  # in place: new pages cost this machine more, and never the same
    return y.astype("f4")


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
        guard, worker_process.GUARD_SECONDS = worker_process.GUARD_SECONDS, 1e6
        with barrow.cluster("local", workers=2, threads=1, memory="1GB") as bare:
            bare.client.run(take_out_there)
            yield {True: safe, False: bare}
        worker_process.GUARD_SECONDS = guard


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
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    results = {}
    print(f"{'':10} {'ms a chunk':>10}", end="")
    print("".join(f" {what + ': safe':>11} {'bare':>7} {'more':>7} {'noise':>7}" for what in WHATS))
    with tempfile.TemporaryDirectory(prefix="barrow-safety-") as name, two_clusters() as clusters:
        source = Path(name) / "source.npy"
        np.save(source, np.random.default_rng(0).random((CHUNKS, SIDE, SIDE)))
        made = barrow.plan(
            compute, source, to=Path(name) / "out.zarr", quiet=True, memory="2GB", cluster=False
        ).with_chunks(dim_0=1, dim_1=SIDE, dim_2=SIDE)
        for engine, (workers, threads) in ENGINES.items():
            plan = replace(made, engine=engine, workers=workers, threads=threads)
            plan = replace(plan, options={**plan.options, "cluster": None})
            found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
            for turn in range(-1, repeats):
                # In turns, so that what the machine does meanwhile meets all alike.
                for kind in (*KINDS[turn % 3 :], *KINDS[: turn % 3]):
                    once = run_once(plan, clusters, kind == "safe")
                    if turn >= 0:  # the first time everything is cold
                        found[kind].append(once)
            results[engine] = row = summarise(found, workers * threads)
            print(f"{engine:10} {row['chunk_ms']:10.0f}", end="")
            for safe, bare, more, noise in (row[what] for what in WHATS):
                print(f" {safe:11.2f} {bare:7.2f} {more:7.1%} {noise:7.1%}", end="")
            print(flush=True)
    facts = {"question": __doc__.splitlines()[0], **describe_machine()}
    print("kept in", write_json("safety", {**facts, "results": results}).name)


def summarise(found: dict[str, list[tuple[float, float]]], slots: int) -> dict[str, object]:
    """Return medians with and without, and the medians of the ratios of neighbours."""
    row: dict[str, object] = {"runs": found}
    for index, what in enumerate(WHATS):
        safe, bare, again = ([once[index] for once in found[kind]] for kind in KINDS)
        more = statistics.median(a / b - 1 for a, b in zip(safe, bare, strict=True))
        noise = statistics.median(a / b - 1 for a, b in zip(again, bare, strict=True))
        row[what] = [statistics.median(safe), statistics.median(bare), more, noise]
        if what == "wall":
            row["chunk_ms"] = 1000 * statistics.median(bare) * slots / CHUNKS
    return row


if __name__ == "__main__":
    main()
