"""Programs that are ill, one for each finding, and the same after following the advice.

Each is run on a cluster of its own kind while barrow watches; see :mod:`soak.illnesses`.
"""

import ctypes
import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

MB = 10**6
PAIR: Mapping[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "1GB"}
SINGLE: Mapping[str, Any] = {"n_workers": 1, "threads_per_worker": 4, "memory_limit": "2GB"}
SMALL: Mapping[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "400MB"}

Work = Callable[[Any], object]


@dataclass(frozen=True)
class Sick:
    """A program with one illness."""

    code: str
    """What must be found."""
    names: str
    """What the claim must name: the step, or the worker."""
    work: Work
    """Takes a client."""
    cured: Work | None = None
    """The same after following the advice."""
    cluster: Mapping[str, Any] = field(default_factory=lambda: PAIR)
    cured_cluster: Mapping[str, Any] | None = None
    also: frozenset[str] = frozenset()
    """What is found besides, and is right."""
    is_lethal: bool = False
    """Whether it spoils its cluster for others."""
    environment: Mapping[str, str] = field(default_factory=dict)


_held: list[Any] = []
"""What a leaking program keeps in each worker."""


def once(flag: str) -> bool:
    """Tell whether nobody has asked yet."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def new_flag() -> str:
    """Return the path of a file that is not there yet."""
    return os.path.join(tempfile.mkdtemp(prefix="barrow-soak-"), "flag")


def spin(seconds: float) -> float:
    """Use the CPU, in Python alone."""
    last = time.thread_time() + seconds
    count = 0.0
    while time.thread_time() < last:
        count += sum(range(100))
    return count


def in_order(client: Any, *calls: Any, **options: Any) -> None:
    """Do one task after another, in each worker at once."""
    for call in calls:
        workers = list(client.scheduler_info()["workers"])
        client.gather([client.submit(*call, workers=[w], pure=False, **options) for w in workers])


# memory


def remember(megabytes: int) -> None:
    _held.append(bytearray(b"x") * (megabytes * MB))


def forget(megabytes: int) -> None:
    bytearray(b"x") * (megabytes * MB)


def leak(client: Any, step: Callable[[int], None] = remember) -> None:
    for _ in range(7):
        in_order(client, (step, 25))
        time.sleep(0.8)


def swell(flag: str, megabytes: int) -> int:
    """Hold more and more, the first time."""
    if not once(flag):
        return 0
    held = []
    for _ in range(megabytes // 10):
        held.append(np.ones(10 * MB // 8))
        time.sleep(0.01)
    return len(held)


def kill_once(client: Any, megabytes: int = 2000) -> None:
    client.submit(swell, new_flag(), megabytes).result(timeout=60)


def hoard(megabytes: int) -> None:
    """Hold so much that the process has this many megabytes."""
    import psutil

    more = megabytes * MB - psutil.Process().memory_info().rss
    _held.append(bytearray(b"x") * max(1, more))


def double(x: int) -> int:
    return 2 * x


def stand_still(client: Any) -> None:
    in_order(client, (hoard, 345))
    time.sleep(0.5)
    futures = client.map(double, range(8))
    time.sleep(8)
    client.cancel(futures, force=True)


def make_block(seed: int, megabytes: int) -> Any:
    return np.random.default_rng(seed).random(megabytes * MB // 8)


def total(block: Any) -> float:
    return float(block.sum())


def spill(client: Any) -> None:
    blocks = client.map(make_block, range(14), megabytes=50)
    client.gather(client.map(total, blocks))


def do_not_spill(client: Any) -> None:
    for seed in range(14):
        client.submit(total, client.submit(make_block, seed, 50)).result()


def crumble(megabytes: int) -> None:
    """Leave holes in the heap: most is freed, little is kept here and there."""
    blocks = [bytearray(b"x") * 60_000 for _ in range(megabytes * MB // 60_000)]
    _held.append(blocks[::40])


def fragment(client: Any) -> None:
    in_order(client, (crumble, 450))
    time.sleep(6)


def trim() -> None:
    ctypes.CDLL("libc.so.6").malloc_trim(0)


def fragment_and_trim(client: Any) -> None:
    in_order(client, (crumble, 450))
    client.run(trim)
    time.sleep(6)


def little(client: Any) -> None:
    client.gather(client.map(double, range(4)))


def gather_all(client: Any) -> None:
    import dask.array as da

    del client
    da.random.random((5800, 5800), chunks=1450).compute()


def gather_little(client: Any) -> None:
    import dask.array as da

    del client
    da.random.random((5800, 5800), chunks=1450).sum().compute()


def fill_client(client: Any) -> None:
    kept = [client.submit(make_block, seed, 90).result() for seed in range(8)]
    time.sleep(0.3)
    del kept


def spare_client(client: Any) -> None:
    for seed in range(8):
        client.submit(total, client.submit(make_block, seed, 90)).result()


def nap(seconds: float, *_: Any) -> float:
    time.sleep(seconds)
    return seconds


def chain(client: Any, length: int = 9) -> None:
    future = client.submit(nap, 0.3)
    for number in range(length):
        future = client.submit(nap, 0.3, future, number)
    future.result()


# chunks


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


def uneven_blocks(client: Any, chunks: Any = (*(1,) * 12, 20)) -> None:
    import dask.array as da

    del client
    x = da.ones((32, 10_000), chunks=(chunks, 10_000))
    blocks = x.map_blocks(sleep_block, seconds=0.08, dtype=float)
    blocks.sum().compute(optimize_graph=False)


def even_blocks(client: Any) -> None:
    uneven_blocks(client, chunks=(2,) * 16)


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


# workers


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


def crash(flag: str) -> None:
    if once(flag):
        os.kill(os.getpid(), signal.SIGSEGV)


def crash_once(client: Any) -> None:
    client.submit(crash, new_flag()).result(timeout=60)


# CPU


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
    client.run(lambda: __import__("threadpoolctl").threadpool_limits(1))
    many_threads(client)


def hold_lock(seconds: float) -> None:
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))  # this call keeps the interpreter's lock


def block_loop(client: Any) -> None:
    in_order(client, (double, 1))
    client.submit(hold_lock, 1.8).result()
    time.sleep(1.2)


def do_not_block(client: Any) -> None:
    client.submit(nap, 1.8).result()


# data


def read_slowly(path: str) -> int:
    """Read a file past the cache of the system."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECT)
    import mmap

    room = mmap.mmap(-1, 1 << 16)
    read = 0
    while n := os.readv(number, [room]):
        read += n
    os.close(number)
    return read


def wait_for_disk(client: Any) -> None:
    folder = Path(tempfile.mkdtemp(prefix="barrow-soak-", dir=os.path.expanduser("~")))
    try:
        for number in range(4):
            (folder / f"{number}").write_bytes(os.urandom(1 << 20) * 100)
            os.sync()
        client.gather(client.map(read_slowly, [str(p) for p in folder.iterdir()], pure=False))
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def send_around(client: Any, is_local: bool = False) -> None:
    here, there = sorted(client.scheduler_info()["workers"])
    blocks = client.map(make_block, range(10), megabytes=30, workers=[here])
    where = here if is_local else there
    client.gather(client.map(total, blocks, workers=[where]))


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
    client.cancel(futures, force=True)


# code


def slowly(number: int) -> int:
    time.sleep(0.15)
    return number


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
    made = [client.submit(make, 250_000, seed, workers=[here]) for seed in range(8)]
    client.gather([client.submit(len, one, workers=[there]) for one in made])


def pack_arrays(client: Any) -> None:
    pack(client, make_arrays)


HALF_OF_RAM = int(0.6 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))

SICK: Mapping[str, Sick] = {
    "a leak": Sick("MEM01", "remember", leak, lambda c: leak(c, forget), is_lethal=True),
    "killed at its limit": Sick(
        "MEM02",
        "swell",
        kill_once,
        lambda c: kill_once(c, 100),
        cluster=SMALL,
        also=frozenset({"MEM03"}),
        is_lethal=True,
    ),
    "killed and retried": Sick(
        "MEM03",
        "swell",
        kill_once,
        lambda c: kill_once(c, 100),
        cluster=SMALL,
        also=frozenset({"MEM02"}),
        is_lethal=True,
    ),
    "paused for ever": Sick(
        "MEM04",
        "orker",
        stand_still,
        cluster=SMALL,
        is_lethal=True,
        also=frozenset({"MEM06", "WRK04"}),
    ),
    "spilling": Sick("MEM05", "worker", spill, do_not_spill, cluster=SMALL, is_lethal=True),
    "fragmented": Sick("MEM06", "orker", fragment, fragment_and_trim, is_lethal=True),
    "limits beyond the machine": Sick(
        "MEM07",
        "2 workers",
        little,
        little,
        cluster={**PAIR, "memory_limit": HALF_OF_RAM},
        cured_cluster=PAIR,
        is_lethal=True,
    ),
    "one huge result": Sick("MEM08", "finalize", gather_all, gather_little),
    "a full client": Sick("MEM09", "client", fill_client, spare_client),
    "spare workers": Sick(
        "MEM10",
        "1 worker",
        chain,
        chain,
        cluster={**PAIR, "n_workers": 4},
        cured_cluster={**PAIR, "n_workers": 1},
        also=frozenset({"WRK03"}),
    ),
    "small chunks": Sick("CHK01", "double", tiny, batched),
    "large chunks": Sick("CHK02", "sleep_block", few_blocks, many_blocks, cluster=SINGLE),
    "uneven chunks": Sick("CHK03", "sleep_block", uneven_blocks, even_blocks),
    "misaligned chunks": Sick("CHK04", "from-zarr", read_across, read_along),
    "uneven load": Sick("WRK01", "worker", one_does_all, all_do_it),
    "a straggler": Sick("WRK02", "'nap'", straggle, do_not_straggle),
    "a slow machine": Sick("WRK02", "machine", slow_machine),
    "too little to do": Sick("WRK03", "next task", chain, all_do_it),
    "nobody offers it": Sick("WRK04", "5 tasks", want_what_is_not_there, little),
    "to and fro": Sick("WRK05", "sent away", to_and_fro, is_lethal=True),
    "a crash": Sick(
        "WRK06", "crash", crash_once, little, also=frozenset({"MEM03"}), is_lethal=True
    ),
    "the interpreter's lock": Sick(
        "CPU01", "spin", python_only, python_only, cluster=SINGLE, cured_cluster=PAIR
    ),
    "too many threads": Sick(
        "CPU02",
        "multiply",
        many_threads,
        few_threads,
        is_lethal=True,
        environment={"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    ),
    "a blocked loop": Sick("CPU03", "hold_lock", block_loop, do_not_block),
    "waiting for the disk": Sick("DAT01", "read_slowly", wait_for_disk),
    "waiting for others": Sick("DAT02", "total", send_around, stay_here),
    "cutting anew": Sick("DAT03", "rechunk", cut_anew, cut_once),
    "a heavy graph": Sick("DAT04", "total", heavy, light),
    "a large graph": Sick("DAT05", "21,000 tasks", large_graph, tiny),
    "computed twice": Sick("COD01", "slowly", twice, at_once),
    "tried again": Sick("COD02", "fail_once", retry, do_not_retry),
    "dear packing": Sick("COD03", "make_objects", pack, pack_arrays),
}
