"""Loops that are compiled when first used, kept for the next time, and run on all cores."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
R = TypeVar("R")


def compiled(func: F) -> F:
    """Return the function as machine code that leaves Python's lock alone."""
    return cast(F, numba.njit(cache=True, nogil=True)(func))


def for_each(func: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return what a function says about each item, in order: one that spends its time compiled.

    Examples
    --------
    >>> for_each(len, ["a", "bc"])
    [1, 2]
    """
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(func, items))
