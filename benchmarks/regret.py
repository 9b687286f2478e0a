"""How far is barrow's plan from the best of a manual sweep?

For each of more than a dozen real functions, on arrays of 50 MB to 4 GB: the time of
the run that barrow plans, over the best time of all runs with eight or more chunk sizes
in each of three layouts (one after the other, threads, worker processes). Beside it the
same ratio for chunk sizes that people use without measuring: Dask's 128 MiB, a tenth of
a worker's memory, and 256 MB, each in the layout that suits it best.

Also, in the same run: predicted over measured time; predicted over measured peak of a
task, and how many chunks exceed its upper bound; the time that probing took, and what it
takes a second time; and the plan against one plain call of the function on everything.
"""

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from measure import describe_machine, write_json
from scipy import fft, linalg, ndimage, signal

import barrow
from barrow.model.reading import count_block_bytes
from barrow.planning.candidates import list_rungs
from barrow.probing.child import measure_peaks

WARM_BYTES = 2**28
RULES = {"128 MiB": 2**27, "tenth of a worker": None, "256 MB": 256 * 10**6}


def element_wise(x):
    return np.sqrt(x * x + 1.0) - 1.0


def spectrum(x):
    return np.abs(fft.rfft(x, axis=-1)).astype("f4")


def smooth(x):
    return ndimage.gaussian_filter(x, (0, 2, 2), truncate=4.0)


def median(x):
    return ndimage.median_filter(x, (1, 3, 3))


def singular_values(x):
    return linalg.svd(x, compute_uv=False)


def python_only(x):
    return np.array([(v * 3 + 1) % 7 for v in x.ravel().tolist()]).reshape(x.shape)


def top_hat(x):
    return ndimage.white_tophat(x, size=(1, 9, 9))


def resample(x):
    return signal.resample_poly(x, 1, 4, axis=-1).astype("f4")


def parse_text(x):
    return np.array([float(t) for t in x.ravel().tolist()]).reshape(x.shape)


def add_up(x):
    return x.sum(dtype="f8")


def depends_on_data(x):
    out = x.copy()
    for row in out:
        for _ in range(int(40 * row[0])):
            np.sin(row, out=row)
    return out


def from_disk(x):
    return x + 1


def wait_for_service(x):
    time.sleep(0.002 + 2e-7 * x.size)
    return x


def make_numba():
    import numba

    @numba.njit(nogil=True)
    def collatz(x):
        out = np.empty(x.size, np.int64)
        for i, value in enumerate(x.ravel()):
            n, steps = value, 0
            while n > 1 and steps < 40:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
            out[i] = steps
        return out.reshape(x.shape)

    return collatz


def workloads(folder):
    """Yield name, function, data (made when needed) and options."""
    random = np.random.default_rng(0)

    def images(count):
        return random.random((count, 1000, 1000), dtype="f4")

    def stored_images():
        array = barrow.open(images(200), dims=("frame", "y", "x"))
        path = folder / "images.zarr"
        barrow.run(barrow.plan(from_disk, array, to=path, quiet=True).with_chunks(frame=1))
        return str(path)

    def mapped():
        path = folder / "large.npy"
        made = np.lib.format.open_memmap(path, "w+", "f4", (100_000, 10_000))
        made[:] = random.random(10_000, dtype="f4")
        made.flush()
        return np.load(path, mmap_mode="r")

    yield "element-wise", element_wise, lambda: random.random((8000, 12_500)), {}
    yield "FFT", spectrum, lambda: random.random((100_000, 2048), dtype="f4"), {"whole": (1,)}
    yield "Gaussian", smooth, lambda: images(100), {"halo": {1: 8, 2: 8}}
    yield "median", median, lambda: images(25), {"halo": {1: 1, 2: 1}}
    yield "SVD", singular_values, lambda: random.random((2000, 200, 40)), {"whole": (1, 2)}
    yield "Numba", make_numba(), lambda: random.integers(1, 10**6, (8000, 1500)), {}
    yield "pure Python", python_only, lambda: random.integers(0, 99, (8000, 2000)), {}
    yield "top-hat", top_hat, lambda: images(40), {"halo": {1: 8, 2: 8}}
    yield "resampling", resample, lambda: random.random((60_000, 4096), dtype="f4"), {"whole": (1,)}
    yield "parsing", parse_text, lambda: random.random((5000, 800)).astype("U8"), {}
    yield "reduction", add_up, mapped, {"combine": lambda a, b: a + b}
    yield (
        "data-dependent",
        depends_on_data,
        lambda: np.linspace(0, 1, 2 * 10**7).reshape(2000, 10_000),
        {"whole": (1,)},
    )
    yield "from disk", from_disk, stored_images, {}
    yield "waiting", wait_for_service, lambda: random.random((10_000, 1000)), {}


def sweep_chunks(plan, sizes=8):
    """Return chunks from small to everything, spread over the ladder, with those of the rules."""
    rungs = [r for r in list_rungs(plan.target) if len(replace(plan, chunks=r).grid) <= 5_000]
    picked = set(np.linspace(0, len(rungs) - 1, sizes).round().astype(int).tolist())
    reads = [chunk_bytes(plan, rung) for rung in rungs]
    for size in RULES.values():
        size = size or tenth_of_a_worker(plan)
        picked.add(min(range(len(rungs)), key=lambda i: abs(np.log(reads[i] / size))))
    return [rungs[i] for i in sorted(picked)]


def chunk_bytes(plan, chunk):
    return count_block_bytes(plan.target, replace(plan, chunks=chunk).grid.ranges(0))


def tenth_of_a_worker(plan):
    return plan.memory_bytes / (10 * os.cpu_count())


def timed(plan):
    warm(plan.result_bytes + WARM_BYTES)
    start = time.perf_counter()
    barrow.run(plan)
    return time.perf_counter() - start


def warm(size):
    """Touch memory and free it: fetching it from the host of a virtual machine takes seconds."""
    np.empty(size, "u1")[::4096] = 1


def study(name, func, data, options):
    start = time.perf_counter()
    plan = barrow.plan(func, data, quiet=True, name=name, **options)
    planning = time.perf_counter() - start
    start = time.perf_counter()
    barrow.plan(func, data, quiet=True, name=name, **options)
    again = time.perf_counter() - start
    cores = os.cpu_count()
    start = time.perf_counter()
    with barrow.cluster("local", workers=cores, threads=1, memory="3GB") as cluster:
        cluster.wait(cores)
        # Workers are started once for all sizes; each run is charged for it.
        charge = {"dask": time.perf_counter() - start}
        tried = [
            replace(
                plan, chunks=chunk, strides={}, engine=engine, workers=workers, threads=threads,
                options={
                    **plan.options,
                    "cluster": cluster if engine == "dask" else None,
                    "may_resize": False,
                },
            )
            for engine, workers, threads in (
                ("inline", 1, 1), ("threads", 1, cores), ("dask", cores, 1),
            )
            for chunk in sweep_chunks(plan)
        ]  # fmt: skip
        first = [(timed(t) + charge.get(t.engine, 0.0), i) for i, t in enumerate(tried)]
        # The best few again, in turns with the plan: the least of many noisy times is too good.
        finalists = [i for _, i in sorted(first)[:3]]
        finals = {i: [] for i in finalists}
        chosen, plain = [], []
        for _ in range(8 if min(first)[0] < 1 else 3):
            chosen.append(timed(plan))
            for i in finalists:
                finals[i].append(timed(tried[i]) + charge.get(tried[i].engine, 0.0))
            plain.append(time_plain(func, data))
    for i, times in finals.items():
        if tried[i].engine == plan.engine and tried[i].chunks == plan.chunks and not plan.strides:
            # The plan itself is among the best: what differs is noise.
            chosen = times[:] = [*chosen, *times]
    best_index = min(finals, key=lambda i: min(finals[i]))
    best, chosen = min(finals[best_index]), min(chosen)
    reads = [chunk_bytes(t, t.chunks) for t in tried]
    rules = {}
    for rule, size in RULES.items():
        size = size or tenth_of_a_worker(plan)
        near = min(set(reads), key=lambda s: abs(np.log(s / size)))
        rules[rule] = min(s for s, i in first if reads[i] == near) / min(best, chosen)
    return {
        "bytes": plan.target and sum(leaf_bytes(plan)),
        "plan": [plan.engine, plan.n_chunks],
        "plan_seconds": chosen,
        "best": [tried[best_index].engine, tried[best_index].n_chunks],
        "best_seconds": best,
        "regret": chosen / min(best, chosen),
        "rules": rules,
        "plain_call_seconds": min(plain),
        "predicted_seconds": plan.seconds,
        "probing_seconds": planning,
        "probing_allowed": max(2.0, 0.05 * plan.seconds),
        "planning_again_seconds": again,
        **compare_peaks(func, data, options),
        "sweep": [[s, tried[i].engine, reads[i], tried[i].n_chunks] for s, i in first],
    }


def leaf_bytes(plan):
    from barrow.model.applied import leaves

    return [leaf.nbytes for leaf in leaves(plan.target)]


def time_plain(func, data):
    if isinstance(data, str):
        import zarr

    start = time.perf_counter()
    func(zarr.open_array(data)[:] if isinstance(data, str) else data)
    return time.perf_counter() - start


def compare_peaks(func, data, options, chunks=12):
    """Return predicted and measured peaks of tasks, in clean processes, for little memory."""
    plan = barrow.plan(func, data, quiet=True, memory="1GB", to="/nonexistent", **options)
    numbers = np.unique(np.linspace(0, plan.n_chunks - 1, chunks).astype(int)).tolist()
    measured = measure_peaks(plan.target, [plan.grid.ranges(i) for i in numbers])
    return {
        "peak_predicted": plan.peak_bytes,
        "peak_bound": plan.peak_bound_bytes,
        "peak_measured": measured,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run workloads whose name contains this")
    options = parser.parse_args()
    results = {}
    print(f"{'':15} {'MB':>5} {'plan':>16} {'s':>6} {'best':>16} {'s':>6} {'regret':>7} ", end="")
    print(*(f"{rule:>10}" for rule in ("128 MiB", "tenth", "256 MB")), end=" ")
    print(f"{'plain':>6} {'pred':>5} {'probe':>6} {'again':>6} {'peak':>5} {'over':>5}")
    with tempfile.TemporaryDirectory(prefix="barrow-regret-") as folder:
        os.environ["BARROW_CACHE"] = folder
        os.environ["BARROW_HISTORY"] = "on"
        for name, func, make, settings in workloads(Path(folder)):
            if options.only not in name:
                continue
            results[name] = study(name, func, make(), settings)
            show(name, results[name])
    summary = summarise(results)
    print(summary)
    if not options.only:
        facts = {"question": __doc__.splitlines()[0], **describe_machine()}
        write_json("regret", {**facts, "summary": summary, "results": results})


def show(name, row):
    measured = row["peak_measured"] or [0]
    print(
        f"{name:15} {row['bytes'] / 1e6:5.0f} {row['plan'][0]:>9} {row['plan'][1]:6} "
        f"{row['plan_seconds']:6.2f} {row['best'][0]:>9} {row['best'][1]:6} "
        f"{row['best_seconds']:6.2f} {row['regret']:7.2f} ",
        *(f"{ratio:10.2f}" for ratio in row["rules"].values()),
        f"{row['plan_seconds'] / row['plain_call_seconds']:6.2f}",
        f"{row['predicted_seconds'] / row['plan_seconds']:5.2f}",
        f"{row['probing_seconds']:6.2f} {row['planning_again_seconds']:6.3f}",
        f"{row['peak_predicted'] / max(1, statistics.median(measured)):5.2f}",
        f"{sum(m > row['peak_bound'] for m in measured):2}/{len(measured)}",
        flush=True,
    )


def summarise(results):
    rows = list(results.values())
    peaks = [(row, m) for row in rows for m in row["peak_measured"] or []]
    off = [abs(row["peak_predicted"] / m - 1) for row, m in peaks]
    return {
        "regret_median": statistics.median(row["regret"] for row in rows),
        "regret_worst": max(row["regret"] for row in rows),
        "rules_median": {
            rule: statistics.median(row["rules"][rule] for row in rows) for rule in RULES
        },
        "peak_error_median": statistics.median(off),
        "peak_bound_exceeded": sum(m > row["peak_bound"] for row, m in peaks) / len(peaks),
        "time_error_median": statistics.median(
            abs(row["predicted_seconds"] / row["plan_seconds"] - 1) for row in rows
        ),
        "probing_over_budget": [
            name for name, row in results.items() if row["probing_seconds"] > row["probing_allowed"]
        ],
        "slower_than_plain": [
            name
            for name, row in results.items()
            if row["plan_seconds"] > 1.05 * row["plain_call_seconds"]
        ],
    }


if __name__ == "__main__":
    main()
