"""Small tasks of which programs are made, and what they share."""

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

MB = 10**6


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


def in_order(client: Any, *calls: Any, **options: Any) -> None:
    """Do one task after another, in each worker at once."""
    for call in calls:
        workers = list(client.scheduler_info()["workers"])
        client.gather([client.submit(*call, workers=[w], pure=False, **options) for w in workers])


def is_paused(client: Any) -> bool:
    """Tell whether all workers have been paused for their memory."""
    workers = client.scheduler_info()["workers"].values()
    return bool(workers) and all(worker["status"] == "paused" for worker in workers)


def wait_until(is_so: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Return what is asked for as soon as it is there; by then also on a busy machine."""
    last = time.monotonic() + seconds
    while not (answer := is_so()):
        if time.monotonic() > last:
            raise TimeoutError("it did not happen in time")
        time.sleep(0.1)
    return answer


def spin(seconds: float) -> float:
    """Use the CPU, in Python alone."""
    last = time.thread_time() + seconds
    count = 0.0
    while time.thread_time() < last:
        count += sum(range(100))
    return count


def nap(seconds: float, *_: Any) -> float:
    time.sleep(seconds)
    return seconds


def double(x: int) -> int:
    return 2 * x


def make_block(seed: int, megabytes: int) -> Any:
    return np.random.default_rng(seed).random(megabytes * MB // 8)


def total(block: Any) -> float:
    return float(block.sum())


def slowly(number: int) -> int:
    time.sleep(0.15)
    return number


def little(client: Any) -> None:
    client.gather(client.map(double, range(4)))
