"""Measure how fast answers of a step get to where the result is kept, and back."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

# Arrays of this size and more get their memory page by page from the kernel.
FRESH_BYTES = 2**23


class Writing(NamedTuple):
    """What it costs to put an answer where the result is kept."""

    seconds_per_chunk: float
    """However small it is: a file has to be made, named and noted."""
    seconds_per_byte: float


NOTHING = Writing(0.0, 0.0)


def measure_copying(answer: Any) -> Writing:
    """Return what it takes to bring an answer into new memory of this process."""
    if not _is_plain(answer):
        return NOTHING
    copies = max(1, FRESH_BYTES // answer.nbytes)
    seconds = []
    for _ in range(2):  # a virtual machine may have to ask its host for memory the first time
        fresh = np.empty((copies, *answer.shape), answer.dtype)
        start = time.perf_counter()
        for number in range(copies):
            fresh[number] = answer
        seconds.append(time.perf_counter() - start)
    return Writing(0.0, min(seconds) / fresh.nbytes)


def measure_storing(answer: Any) -> Writing:
    """Return what it takes to bring an answer into a store, compression included."""
    if not _is_plain(answer):
        return NOTHING
    try:
        seconds = _time_storing(answer)
        one_item = _time_storing(answer.ravel()[:1])
    except OSError:
        return NOTHING  # no room for a sample: nothing is known about its speed
    per_chunk = min(one_item, seconds)
    return Writing(per_chunk, (seconds - per_chunk) / int(answer.nbytes))


def _time_storing(answer: Any) -> float:
    with _small_store(answer) as array:
        return 0.0 if array is None else _time_twice(lambda: array.set_basic_selection(..., answer))


def measure_loading(answer: Any) -> float:
    """Return the seconds that each byte takes from a store into memory."""
    with _small_store(answer) as array:
        if array is None:
            return 0.0
        try:
            array[...] = answer
            return _time_twice(lambda: array[...]) / int(answer.nbytes)
        except OSError:
            return 0.0


@contextmanager
def _small_store(answer: Any) -> Iterator[Any]:
    """Yield an empty array in a temporary folder; None if there can be none."""
    import zarr

    if not _is_plain(answer):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="barrow-") as folder:
        try:
            array = zarr.create_array(
                f"{folder}/probe.zarr",
                shape=answer.shape,
                dtype=answer.dtype,
                chunks=tuple(max(1, n) for n in answer.shape),
            )
        except (TypeError, ValueError, OSError):
            array = None  # it will be said when the store is made
        yield array


def _time_twice(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(2):  # the first time, libraries are loaded
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _is_plain(answer: Any) -> bool:
    return isinstance(answer, np.ndarray) and bool(answer.nbytes) and not answer.dtype.hasobject
