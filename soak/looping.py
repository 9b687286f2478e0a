"""Programs that go through events one by one, in Python and compiled; see :mod:`soak.sick`."""

import math
import operator
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import barrow

EVENTS = 600_000


def count_near(pt: Any, eta: Any, phi: Any, mass: float = 91.2, width: float = 15.0) -> int:
    """Return how many pairs have a mass near one that is looked for."""
    n = 0
    for event in range(len(pt)):
        angles = math.cosh(eta[event, 0] - eta[event, 1]) - math.cos(phi[event, 0] - phi[event, 1])
        found = math.sqrt(2 * pt[event, 0] * pt[event, 1] * angles)
        if abs(found - mass) < width:
            n += 1
    return n


@cache
def compiled() -> Callable[..., int]:
    """Return the same loop under Numba."""
    import numba

    return numba.njit(nogil=True)(count_near)


def select(seed: int, is_compiled: bool = False) -> int:
    rng = np.random.default_rng(seed)
    pt, eta, phi = (rng.random((EVENTS, 2)) for _ in range(3))
    return (compiled() if is_compiled else count_near)(60 * pt, 5 * eta, 6 * phi)


def loop_in_python(client: Any, is_compiled: bool = False) -> None:
    client.gather(client.map(select, range(16), is_compiled=is_compiled, pure=False))


def loop_compiled(client: Any) -> None:
    loop_in_python(client, is_compiled=True)


def count_in_python(block: Any) -> int:
    return count_near(60 * block[:, :2], 5 * block[:, 2:4], 6 * block[:, 4:])


def count_compiled(block: Any) -> int:
    return compiled()(60 * block[:, :2], 5 * block[:, 2:4], 6 * block[:, 4:])


def loop_on_workers(folder: Path, count: Callable[[Any], Any] = count_in_python) -> Any:
    """Let barrow count on worker processes, where the interpreter's lock is no trouble."""
    events = np.random.default_rng(0).random((8 * EVENTS, 6))
    with barrow.cluster(workers=2) as cluster:
        plan = barrow.plan(
            count, events, combine=operator.add, whole=[1], cluster=cluster, quiet=True
        )
        return barrow.run(plan, cluster=cluster, folder=folder)


def loop_compiled_on_workers(folder: Path) -> Any:
    return loop_on_workers(folder, count_compiled)
