"""Programs that go through events one by one, in Python and compiled; see :mod:`soak.sick`."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

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
