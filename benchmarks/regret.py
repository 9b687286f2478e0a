"""How far is barrow's plan from the best of a manual sweep?

For each of a dozen real functions: the time of the run that barrow plans, over the
best time of all runs with eight or more chunk sizes in each of three layouts (one
after the other, threads, worker processes). Beside it the same ratio for chunk
sizes that people use without measuring: Dask's 128 MiB, a tenth of a worker's
memory, and 256 MB, each in the layout that suits it best. Also: the predicted over
the measured time, and the share of the work that planning took.
"""

import argparse
import os
import statistics
import time
from dataclasses import replace

import numpy as np
from measure import describe_machine, write_json
from scipy import fft, linalg, ndimage, signal

import barrow

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
    for _ in range(int(out.flat[0] * 20)):
        out = np.sin(out)
    return out


def wait_for_disk(x):
    time.sleep(0.002 + 2e-9 * x.size)
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


def workloads():
    """Yield name, function, data and options, one after the other."""
    random = np.random.default_rng(0)
    image = random.random((8, 1000, 1000), dtype="f4")
    yield "element-wise", element_wise, random.random((4000, 3000)), {}
    yield "FFT", spectrum, random.random((6000, 2048), dtype="f4"), {"whole": (1,)}
    yield "Gaussian", smooth, image, {"halo": {1: 8, 2: 8}}
    yield "median", median, image, {"halo": {1: 1, 2: 1}}
    yield "SVD", singular_values, random.random((400, 200, 40)), {"whole": (1, 2)}
    yield "Numba", make_numba(), random.integers(1, 10**6, (2000, 1500)), {}
    yield "pure Python", python_only, random.integers(0, 99, (1500, 2000)), {}
    yield "top-hat", top_hat, image[:4], {"halo": {1: 8, 2: 8}}
    yield "resampling", resample, random.random((2000, 4096), dtype="f4"), {"whole": (1,)}
    yield "parsing", parse_text, random.random((1000, 800)).astype("U8"), {}
    yield "reduction", add_up, random.random((8000, 2000)), {"combine": lambda a, b: a + b}
    yield "data-dependent", depends_on_data, np.linspace(0, 1, 2 * 10**6).reshape(2000, 1000), {}
    yield "waiting", wait_for_disk, random.random((2000, 1000)), {}


def sweep_chunks(plan, sizes=9):
    """Return chunks from small to everything, spread over the ladder."""
    from barrow.composing import block_at
    from barrow.planning.planner import list_rungs
    from barrow.probing.costs import count_items

    target = plan.target
    rungs = list_rungs(target, lambda n: count_items(target, block_at(target, n, 0.5)))
    rungs = [rung for rung in rungs if len(replace(plan, chunks=rung).grid) <= 4000]
    picked = np.unique(np.linspace(0, len(rungs) - 1, sizes).round().astype(int))
    return [rungs[i] for i in picked]


def timed(plan, repeats=2):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        barrow.run(plan)
        times.append(time.perf_counter() - start)
        if times[0] > 3:
            break
    return min(times)


def study(name, func, data, options):
    start = time.perf_counter()
    plan = barrow.plan(func, data, quiet=True, name=name, **options)
    planning = time.perf_counter() - start
    chosen = timed(plan)
    cores = os.cpu_count()
    found = []

    def sweep(engine, workers, threads, start_seconds=0.0):
        for chunk in sweep_chunks(plan):
            tried = replace(plan, chunks=chunk, engine=engine, workers=workers, threads=threads)
            size = data.nbytes / tried.n_chunks
            found.append((start_seconds + timed(tried), engine, size, tried.n_chunks))

    sweep("inline", 1, 1)
    sweep("threads", 1, cores)
    # Workers are started once for all sizes; each run is charged for it.
    start = time.perf_counter()
    with barrow.cluster("local", workers=cores, threads=1, memory="2GB") as cluster:
        cluster.wait(cores)
        sweep("dask", cores, 1, start_seconds=time.perf_counter() - start)
    best = min(found)
    rules = {}
    for rule, size in RULES.items():
        size = size or plan.memory_bytes / (10 * cores)
        near = min({row[2] for row in found}, key=lambda s: abs(np.log(min(size, data.nbytes) / s)))
        rules[rule] = min(row[0] for row in found if row[2] == near) / min(best[0], chosen)
    return {
        "plan": [plan.engine, plan.n_chunks],
        "plan_seconds": chosen,
        "predicted_seconds": plan.seconds,
        "planning_seconds": planning,
        "best": best,
        "regret": chosen / min(best[0], chosen),
        "rules": rules,
        "sweep": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run workloads whose name contains this")
    options = parser.parse_args()
    results = {}
    print(f"{'':16} {'plan':>18} {'s':>6} {'best':>18} {'s':>6} {'regret':>7} ", end="")
    print(*(f"{rule:>18}" for rule in RULES), f"{'predicted':>10}")
    for name, func, data, settings in workloads():
        if options.only not in name:
            continue
        row = results[name] = study(name, func, data, settings)
        engine, count = row["plan"]
        seconds, best_engine, _, best_count = row["best"]
        print(
            f"{name:16} {engine:>11} {count:6} {row['plan_seconds']:6.2f} {best_engine:>11} "
            f"{best_count:6} {seconds:6.2f} {row['regret']:7.2f} ",
            *(f"{ratio:18.2f}" for ratio in row["rules"].values()),
            f"{row['predicted_seconds'] / row['plan_seconds']:10.2f}",
            flush=True,
        )
    regrets = [row["regret"] for row in results.values()]
    print(f"median {statistics.median(regrets):.2f}, worst {max(regrets):.2f}")
    if not options.only:
        facts = {"question": __doc__.splitlines()[0], **describe_machine()}
        write_json("regret", {**facts, "results": results})


if __name__ == "__main__":
    main()
