"""What programs do whose memory is ill; see :mod:`soak.sick`."""

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from soak.pieces import (
    MB,
    double,
    in_order,
    is_paused,
    make_block,
    new_flag,
    once,
    total,
    wait_until,
)

_held: list[Any] = []
"""What a leaking program keeps in each worker."""


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


def stand_still(client: Any) -> None:
    in_order(client, (hoard, 345))
    wait_until(lambda: is_paused(client))
    futures = client.map(double, range(8))
    time.sleep(8)
    client.cancel(futures, force=True)


def stand_and_restart(client: Any) -> None:
    in_order(client, (hoard, 345))
    wait_until(lambda: is_paused(client))
    futures = client.map(double, range(8))
    client.restart_workers(list(client.scheduler_info()["workers"]))
    client.gather(futures)


def spill(client: Any) -> None:
    # Small blocks: writing keeps up with making, and no worker comes near the limit that kills.
    blocks = client.map(make_block, range(45), megabytes=20)
    client.gather(client.map(total, blocks))


def do_not_spill(client: Any) -> None:
    for seed in range(45):
        client.submit(total, client.submit(make_block, seed, 20)).result()


def crumble(megabytes: int) -> None:
    """Leave holes in the heap: most is freed, little is kept here and there."""
    blocks = [bytearray(b"x") * 60_000 for _ in range(megabytes * MB // 60_000)]
    _held.append(blocks[::40])


def fragment(client: Any) -> None:
    in_order(client, (crumble, 540))
    time.sleep(6)


def trim() -> None:
    ctypes.CDLL("libc.so.6").malloc_trim(0)


def fragment_and_trim(client: Any) -> None:
    in_order(client, (crumble, 540))
    client.run(trim)
    time.sleep(6)


def gather_all(client: Any) -> None:
    import dask.array as da

    del client
    da.random.random((5200, 5200), chunks=1300).compute()


def gather_little(client: Any) -> None:
    import dask.array as da

    del client
    da.random.random((5200, 5200), chunks=1300).sum().compute()


def fill_client(client: Any) -> None:
    kept = [client.submit(make_block, seed, 90).result() for seed in range(8)]
    time.sleep(0.3)
    del kept


def spare_client(client: Any) -> None:
    for seed in range(8):
        client.submit(total, client.submit(make_block, seed, 90)).result()
