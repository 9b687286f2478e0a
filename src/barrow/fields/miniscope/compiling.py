"""Loops that are compiled when they are first used, and kept for the next time."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(func: F) -> F:
    """Return the function as machine code that leaves Python's lock alone."""
    return cast(F, numba.njit(cache=True, nogil=True)(func))
