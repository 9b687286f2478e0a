"""What does the raster example of SpatialData's documentation cost, and where?

A Dask array of 3 × 10000 × 10000 random floats in chunks of 1 × 1000 × 1000, plus
one, plus two; the result in memory. The same work as plain NumPy, on a Dask
cluster of two workers with 8 GB (with the documented 5 GB it dies), and with
barrow: on a cluster of two workers of 5 GB, as a pipeline of two steps, and left
to choose for itself. Each runs in processes of its own, from start to end.
"""

import argparse
import sys

from measure import format_table, measure, save

SHAPE, CHUNKS = (3, 10000, 10000), (1, 1000, 1000)


def add_one(x):
    return x + 1


def add_two(x):
    return x + 2


def source():
    import dask.array as da

    return da.random.default_rng(0).random(SHAPE, chunks=CHUNKS)


def numpy_blocks():
    """Blocks of random numbers, written straight into the result; one thread."""
    import numpy as np

    random = np.random.default_rng(0)
    out = np.empty(SHAPE)
    _, height, width = CHUNKS
    for c in range(SHAPE[0]):
        for y in range(0, SHAPE[1], height):
            for x in range(0, SHAPE[2], width):
                block = random.random((height, width))
                block += 1
                block += 2
                out[c, y : y + height, x : x + width] = block
    return out


def dask_cluster():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="8GB", dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        return source().map_blocks(add_one).map_blocks(add_two).compute()


def dask_threads():
    return source().map_blocks(add_one).map_blocks(add_two).compute(scheduler="threads")


def barrow_cluster():
    import barrow

    with barrow.cluster("local", workers=2, threads=1, memory="5GB"):
        return barrow.map(lambda x: add_two(add_one(x)), source(), quiet=True)


def barrow_cluster_one_by_one():
    import barrow

    with barrow.cluster("local", workers=2, threads=1, memory="5GB"):
        between = barrow.map(add_one, source(), quiet=True)
        return barrow.map(add_two, between, quiet=True)


def barrow_cluster_pipeline():
    import barrow

    steps = [barrow.Step(add_one, name="add one"), barrow.Step(add_two, name="add two")]
    with barrow.cluster("local", workers=2, threads=1, memory="5GB"):
        return barrow.run(steps, source(), quiet=True).result


def barrow_itself():
    import barrow

    return barrow.map(lambda x: add_two(add_one(x)), source(), quiet=True)


def dask_cluster_sum():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="8GB", dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        return source().map_blocks(add_one).map_blocks(add_two).sum().compute()


def barrow_cluster_sum():
    import barrow

    with barrow.cluster("local", workers=2, threads=1, memory="5GB"):
        return barrow.reduce(lambda x: add_two(add_one(x)).sum(), source(), quiet=True)


def barrow_itself_sum():
    import barrow

    return barrow.reduce(lambda x: add_two(add_one(x)).sum(), source(), quiet=True)


VARIANTS = {
    "NumPy, one thread": numpy_blocks,
    "Dask threads": dask_threads,
    "Dask, 2 workers of 8 GB": dask_cluster,
    "barrow, 2 workers of 5 GB": barrow_cluster,
    "barrow, 2 workers, two calls": barrow_cluster_one_by_one,
    "barrow, 2 workers, pipeline": barrow_cluster_pipeline,
    "barrow, left to itself": barrow_itself,
    "Dask, 2 workers, only the sum": dask_cluster_sum,
    "barrow, 2 workers, only the sum": barrow_cluster_sum,
    "barrow, left to itself, sum": barrow_itself_sum,
}


def run_variant(name: str) -> None:
    """Do one variant here, touch all of its result, and print it."""
    result = VARIANTS[name]()
    mean = float(result.mean()) if result.ndim else float(result) / 3e8
    assert abs(mean - 3.5) < 1e-3, mean
    print(f"mean {mean:.6f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="run variants whose name contains this")
    parser.add_argument("--variant", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        run_variant(options.variant)
        return
    rows: dict = {name: [] for name in VARIANTS if options.only in name}
    for _ in range(options.repeats):
        # One of each in turn: what the machine does meanwhile meets all of them.
        for name in rows:
            rows[name].append(
                measure([sys.executable, __file__, "--variant", name], warm_bytes=8 * 2**30)
            )
    print(format_table(rows))
    if not options.only:
        question = __doc__.splitlines()[0]
        print("kept in", save("raster", question, rows, shape=SHAPE, chunks=CHUNKS).name)


if __name__ == "__main__":
    main()
