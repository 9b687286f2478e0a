"""Programs with which nothing is wrong: whoever warns of one of them is wrong himself."""

import operator
import tempfile
import time
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from soak.ailing import do_not_straggle
from soak.looping import loop_compiled
from soak.pieces import double, make_block, nap, slowly, spin, total
from soak.sick import Work


def sums(client: Any) -> None:
    client.gather(client.map(total, client.map(make_block, range(12), megabytes=8)))


def reduce_tree(client: Any) -> None:
    import dask.array as da

    del client
    da.random.random((4000, 4000), chunks=500).mean(axis=0).std().compute()


def matrix(client: Any) -> None:
    import dask.array as da

    del client
    x = da.random.random((1200, 1200), chunks=400)
    (x @ x.T).sum().compute()


def rechunk(client: Any) -> None:
    import dask.array as da

    del client
    da.random.random((2000, 2000), chunks=(250, 2000)).rechunk((2000, 250)).sum().compute()


def overlap(client: Any) -> None:
    import dask.array as da

    del client
    x = da.random.random((1500, 1500), chunks=500)
    x.map_overlap(lambda b: b + np.roll(b, 1), depth=5, boundary="reflect").sum().compute()


def svd(client: Any) -> None:
    import dask.array as da

    del client
    da.linalg.svd(da.random.random((4000, 40), chunks=(500, 40)))[1].compute()


def short(client: Any) -> None:
    client.submit(double, 1).result()


def long(client: Any) -> None:
    client.submit(spin, 1.2).result()


def pauses(client: Any) -> None:
    for _ in range(4):
        client.gather(client.map(total, client.map(make_block, range(4), megabytes=8)))
        time.sleep(0.4)


def submit_one_by_one(client: Any) -> None:
    for number in range(40):
        client.submit(double, number).result()


def kept(client: Any) -> None:
    held = client.map(make_block, range(8), megabytes=8)
    client.gather(client.map(total, held))
    client.gather(client.map(len, held))


def persisted(client: Any) -> None:
    import dask.array as da

    del client
    x = da.random.random((2000, 2000), chunks=500).persist()
    x.sum().compute()
    x.mean().compute()


def delayed(client: Any) -> None:
    import dask

    del client
    parts = [dask.delayed(slowly)(number) for number in range(12)]
    dask.delayed(sum)(parts).compute()


def bag(client: Any) -> None:
    import dask.bag as db

    del client
    db.from_sequence(range(20_000), npartitions=8).map(double).sum().compute()


def graph_of_folds(client: Any) -> None:
    parts = client.map(slowly, range(8))
    client.submit(reduce, operator.add, parts).result()


def store(client: Any) -> None:
    import dask.array as da

    del client
    x = da.random.random((2000, 2000), chunks=500)
    x.to_zarr(f"{tempfile.mkdtemp(prefix='barrow-soak-')}/x.zarr")


def load(client: Any) -> None:
    import dask.array as da
    import zarr

    del client
    path = f"{tempfile.mkdtemp(prefix='barrow-soak-')}/x.zarr"
    zarr.create_array(path, shape=(3000, 3000), chunks=(500, 500), dtype="f8")[:] = 1.0
    da.from_zarr(path).sum().compute()


def scattered(client: Any) -> None:
    big = client.scatter(np.ones(4_000_000), broadcast=True)
    client.gather([client.submit(total, big, pure=False) for _ in range(6)])


def as_they_come(client: Any) -> None:
    from distributed import as_completed

    for _ in as_completed(client.map(nap, [0.1] * 20, pure=False)):
        pass


def somewhat_uneven(client: Any) -> None:
    client.gather(client.map(nap, [0.1, 0.2, 0.3] * 6, pure=False))


def with_actors(client: Any) -> None:
    from collections import Counter

    actor = client.submit(Counter, actor=True).result()
    for _ in range(5):
        actor.update([1]).result()


def fails_cleanly(client: Any) -> None:
    future = client.submit(operator.truediv, 1, 0)
    assert isinstance(future.exception(), ZeroDivisionError)


def cancelled(client: Any) -> None:
    futures = client.map(nap, [0.2] * 20, pure=False)
    client.gather(futures[:4])
    client.cancel(futures[4:], force=True)


def frames(client: Any) -> None:
    import pandas as pd

    made = [client.submit(pd.DataFrame, {"a": np.arange(50_000.0)}, pure=False) for _ in range(8)]
    client.submit(pd.concat, made).result()


def local_threads(client: Any) -> None:
    import dask.array as da

    del client
    da.random.random((3000, 3000), chunks=500).sum().compute(scheduler="threads")


def local_processes(client: Any) -> None:
    import dask

    del client
    dask.compute(*[dask.delayed(double)(n) for n in range(8)], scheduler="processes", num_workers=2)


def grows(client: Any) -> None:
    """More workers come while it runs, as autoscaling does."""
    client.gather(client.map(nap, [0.05] * 10, pure=False))


def roots(n: int) -> float:
    """Call compiled code again and again, each time for long."""
    numbers = np.ones(1_000_000)
    for _ in range(n):
        numbers = np.sqrt(numbers)
    return float(numbers[0])


def numpy_in_a_loop(client: Any) -> None:
    client.gather(client.map(roots, [500] * 8, pure=False))


HEALTHY: Mapping[str, Work] = {
    work.__name__: work
    for work in (
        *(sums, reduce_tree, matrix, rechunk, overlap, svd, short, long, pauses),
        *(submit_one_by_one, kept, persisted, delayed, bag, graph_of_folds, store, load),
        *(scattered, as_they_come, somewhat_uneven, with_actors, fails_cleanly, cancelled),
        *(frames, local_threads, local_processes, grows, do_not_straggle),
        *(loop_compiled, numpy_in_a_loop),
    )
}
