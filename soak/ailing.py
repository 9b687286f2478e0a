"""What programs do that are ill in other ways than by their memory; see :mod:`soak.sick`."""

import ctypes
import mmap
import os
import signal
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from distributed import wait

import barrow
from soak.pieces import MB, double, make_block, nap, new_flag, once, slowly, spin, total

LONG_SECONDS = 22.0
_never_done: list[Any] = []


def compute_for_long(client: Any) -> None:
    future = client.submit(spin, 600, pure=False)
    time.sleep(LONG_SECONDS)
    _give_up(client, future)


def hang(client: Any) -> None:
    future = client.submit(nap, 600, pure=False)
    time.sleep(LONG_SECONDS)
    _give_up(client, future)


def _give_up(client: Any, future: Any) -> None:
    """Cancel a task that will not end while its worker lives."""
    future.cancel(force=True)
    client.cluster.scale(0)


def start_late(client: Any, preload: tuple[str, ...] = ("soak.late",)) -> None:
    import dask

    with dask.config.set({"distributed.worker.preload": list(preload)}):
        client.cluster.scale(3)
        client.wait_for_workers(3)
    client.gather(client.map(double, range(4)))


def start_at_once(client: Any) -> None:
    start_late(client, ())


def smooth(block: Any) -> Any:
    for _ in range(300):
        block = np.sqrt(block + 1.0)
    return block


def dear_halo(folder: Path, rows: int = 16) -> Any:
    """Smooth an image in stripes that are as narrow as what they need of their neighbours."""
    plan = barrow.plan(smooth, np.ones((1024, 2000)), halo={0: 16}, cluster=False, quiet=True)
    return barrow.run(plan.with_chunks(dim_0=rows, dim_1=2000), folder=folder)


def cheap_halo(folder: Path) -> Any:
    return dear_halo(folder, 512)


def chain(client: Any, length: int = 9) -> None:
    future = client.submit(nap, 0.3)
    for number in range(length):
        future = client.submit(nap, 0.3, future, number)
    future.result()


def tiny(client: Any, n: int = 800) -> None:
    client.gather(client.map(double, range(n)))


def double_all(numbers: Any) -> Any:
    return [2 * number for number in numbers]


def batched(client: Any, n: int = 800) -> None:
    client.gather(client.map(double_all, [range(n // 4)] * 4))


def sleep_block(block: Any, seconds: float) -> Any:
    time.sleep(seconds * block.shape[0])
    return block + 0.0


def few_blocks(client: Any, chunk: int = 8) -> None:
    import dask.array as da

    del client
    x = da.ones((16, 1000), chunks=(chunk, 1000))
    x.map_blocks(sleep_block, seconds=0.25, dtype=float).sum().compute(optimize_graph=False)


def many_blocks(client: Any) -> None:
    few_blocks(client, chunk=1)


def make_rows(rows: int) -> Any:
    time.sleep(0.08 * rows)
    return np.ones((rows, 10_000))


def uneven_blocks(client: Any, rows: tuple[int, ...] = (*(1,) * 12, 20)) -> None:
    wait(client.map(make_rows, rows, pure=False))


def even_blocks(client: Any) -> None:
    uneven_blocks(client, (2,) * 16)


def read_across(client: Any, chunks: Any = (1000, 100)) -> None:
    import dask.array as da
    import zarr

    del client
    path = tempfile.mkdtemp(prefix="barrow-soak-")
    stored = zarr.create_array(
        f"{path}/x.zarr", shape=(4000, 1000), chunks=(1000, 1000), dtype="f8", compressors=None
    )
    stored[:] = 1.0
    x = da.from_zarr(f"{path}/x.zarr", chunks=chunks)
    x.sum().compute(optimize_graph=False)


def read_along(client: Any) -> None:
    read_across(client, chunks=(1000, 1000))


def one_does_all(client: Any, is_bound: bool = True) -> None:
    first = sorted(client.scheduler_info()["workers"])[0]
    where = {"workers": [first]} if is_bound else {}
    client.gather(client.map(nap, [0.3] * 12, pure=False, **where))


def all_do_it(client: Any) -> None:
    one_does_all(client, is_bound=False)


def straggle(client: Any, longest: float = 2.5) -> None:
    client.gather(client.map(nap, [*[0.1] * 20, longest], pure=False))


def do_not_straggle(client: Any) -> None:
    client.gather(client.map(nap, [0.1] * 45, pure=False))


def nap_by_place(slow_pid: int, _: int) -> None:
    time.sleep(0.5 if os.getpid() == slow_pid else 0.1)


def slow_machine(client: Any) -> None:
    pid = next(iter(client.run(os.getpid).values()))
    client.gather(client.map(nap_by_place, [pid] * 20, range(20), pure=False))


def want_what_is_not_there(client: Any) -> None:
    futures = client.map(double, range(5), resources={"GPU": 1}, pure=False)
    time.sleep(9)
    client.cancel(futures, force=True)


def to_and_fro(client: Any) -> None:
    for _ in range(3):
        client.cluster.scale(2)
        client.wait_for_workers(2)
        client.gather(client.map(nap, [0.1] * 4, pure=False))
        client.cluster.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.02)
    client.cluster.scale(1)
    client.gather(client.map(nap, [0.1] * 4, pure=False))


def stay(client: Any) -> None:
    client.gather(client.map(nap, [0.1] * 16, pure=False))


def crash(flag: str) -> None:
    if once(flag):
        os.kill(os.getpid(), signal.SIGSEGV)


def crash_once(client: Any) -> None:
    client.submit(crash, new_flag()).result(timeout=60)


def python_only(client: Any) -> None:
    client.gather(client.map(spin, [0.6] * 8, pure=False))


def multiply(seed: int) -> float:
    x = np.random.default_rng(seed).random((900, 900))
    for _ in range(12):
        x = (x @ x) / 1e3
    return float(x.sum())


def many_threads(client: Any) -> None:
    client.gather(client.map(multiply, range(10), pure=False))


def few_threads(client: Any) -> None:
    client.run(lambda: bool(__import__("threadpoolctl").threadpool_limits(1)))
    many_threads(client)


def hold_lock(seconds: float) -> None:
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))  # this call keeps the interpreter's lock


def worker_address() -> str:
    """Return where this task runs."""
    from distributed import get_worker

    return str(get_worker().address)


def block_loop(client: Any) -> None:
    # On one worker: the first task of a worker may be slow for other reasons.
    worker = client.submit(worker_address, pure=False).result()
    client.submit(hold_lock, 1.8, workers=[worker], pure=False).result()
    time.sleep(1.2)


def do_not_block(client: Any) -> None:
    client.submit(nap, 1.8).result()


def read_slowly(path: str) -> int:
    """Read a file past the cache of the system; what is packed is unpacked."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECT)
    room = mmap.mmap(-1, 1 << 16)
    read, unpacking = 0, zlib.decompressobj() if path.endswith("packed") else None
    while n := os.readv(number, [room]):
        read += len(unpacking.decompress(room[:n])) if unpacking else n
    os.close(number)
    return read


def wait_for_disk(client: Any, is_packed: bool = False) -> None:
    folder = Path(tempfile.mkdtemp(prefix="barrow-soak-", dir=os.path.expanduser("~")))
    content = os.urandom(1 << 14) * 6400
    stored = zlib.compress(content, 1) if is_packed else content
    try:
        for number in range(4):
            name = f"{number}.packed" if is_packed else f"{number}"
            (folder / name).write_bytes(stored)
            os.sync()
        client.gather(client.map(read_slowly, [str(p) for p in folder.iterdir()], pure=False))
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def read_packed(client: Any) -> None:
    wait_for_disk(client, is_packed=True)


def send_around(client: Any, is_local: bool = False) -> None:
    """Make blocks on both workers, and use each where it is not."""
    here, there = sorted(client.scheduler_info()["workers"])
    totals = []
    for maker, other in ((here, there), (there, here)):
        seeds = range(5) if maker == here else range(5, 10)
        blocks = client.map(make_block, seeds, megabytes=30, workers=[maker])
        totals += client.map(total, blocks, workers=[maker if is_local else other])
    client.gather(totals)


def stay_here(client: Any) -> None:
    send_around(client, is_local=True)


def cut_anew(client: Any) -> None:
    import dask
    import dask.array as da

    del client
    with dask.config.set({"array.rechunk.method": "tasks"}):
        x = da.ones((1200, 1200), chunks=(75, 1200))
        for _ in range(2):
            x = x.rechunk((1200, 75)).rechunk((75, 1200))
        x.sum().compute()


def cut_once(client: Any) -> None:
    import dask.array as da

    del client
    da.ones((1200, 1200), chunks=(75, 1200)).rechunk((1200, 300)).sum().compute()


def heavy(client: Any) -> None:
    client.gather(client.map(total, [np.random.random(MB) for _ in range(15)], pure=False))


def light(client: Any) -> None:
    client.gather(client.map(total, client.map(make_block, range(15), megabytes=8), pure=False))


def large_graph(client: Any) -> None:
    futures = client.map(double, range(21_000), pure=False)
    client.gather(futures[:10])
    # Not cancelled: Dask needs minutes to let go of so many. They end with the cluster.
    _never_done.append(futures)


def twice(client: Any) -> None:
    import dask

    del client
    parts = [dask.delayed(slowly)(number) for number in range(8)]
    dask.delayed(sum)(parts).compute()
    dask.delayed(max)(parts).compute()


def at_once(client: Any) -> None:
    import dask

    del client
    parts = [dask.delayed(slowly)(number) for number in range(8)]
    dask.compute(dask.delayed(sum)(parts), dask.delayed(max)(parts))


def fail_once(flag: str) -> int:
    if once(flag):
        raise ValueError("no photons")
    return 1


def retry(client: Any) -> None:
    client.submit(fail_once, new_flag(), retries=2).result()


def do_not_retry(client: Any) -> None:
    client.submit(double, 1).result()


def make_objects(n: int, seed: int) -> Any:
    return [{"id": number, "energy": seed + number / 7} for number in range(n)]


def make_arrays(n: int, seed: int) -> Any:
    return {"id": np.arange(n), "energy": seed + np.arange(n) / 7}


def pack(client: Any, make: Callable[..., Any] = make_objects) -> None:
    here, there = sorted(client.scheduler_info()["workers"])
    for seed in range(3):
        made = client.submit(make, 30_000, seed, workers=[here])
        client.submit(len, made, workers=[there]).result()


def pack_arrays(client: Any) -> None:
    pack(client, make_arrays)
