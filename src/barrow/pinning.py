"""Keep numerical libraries from starting threads of their own."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_library_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread for each caller, and give theirs back afterwards.

    Tasks that run side by side have a core each; libraries that start a thread
    for every core, in every task, would only make them wait for one another.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
