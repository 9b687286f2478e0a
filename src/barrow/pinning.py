"""Decide how many threads numerical libraries start of their own.

Tasks that run side by side have a core each; libraries that start a thread for every core, in
every task, would only make them wait for one another.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


@contextmanager
def library_threads(count: int) -> Iterator[None]:
    """Let BLAS, OpenMP and Numba use so many threads for each caller, and give theirs back."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=count), _numba_threads(lambda most: min(count, most)):
        yield


def limit_library_threads(count: int) -> None:
    """Limit what the calling thread may use for as long as it lives.

    OpenMP and Numba count threads for each caller: what the main thread was allowed is nothing
    to a thread that it starts.
    """
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=count)
    if (numba := _find_started_numba()) is not None:
        numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


def share_of_numba(callers: int) -> AbstractContextManager[None]:
    """Let the calling thread use a share of the threads that Numba has in this process."""
    return _numba_threads(lambda most: max(1, most // callers))


@contextmanager
def _numba_threads(choose: Callable[[int], int]) -> Iterator[None]:
    numba = _find_started_numba()
    if numba is None:
        yield
        return
    before = numba.get_num_threads()
    numba.set_num_threads(choose(numba.config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        numba.set_num_threads(before)


def _find_started_numba() -> Any:
    """Return Numba if it has threads already: to ask it for their number would start them."""
    parallel = sys.modules.get("numba.np.ufunc.parallel")
    return sys.modules["numba"] if getattr(parallel, "_is_initialized", False) else None
