"""Measure how fast answers of a step get to where the result is kept."""

import tempfile
import time
from typing import Any

import numpy as np

# Arrays of this size and more get their memory page by page from the kernel.
FRESH_BYTES = 2**23


def measure_copying(answer: Any) -> float:
    """Return the seconds that each byte takes into new memory of this process."""
    if not _is_plain(answer):
        return 0.0
    copies = max(1, FRESH_BYTES // answer.nbytes)
    seconds = []
    for _ in range(2):  # a virtual machine may have to ask its host for memory the first time
        fresh = np.empty((copies, *answer.shape), answer.dtype)
        start = time.perf_counter()
        for copy in fresh:
            copy[...] = answer
        seconds.append(time.perf_counter() - start)
    return min(seconds) / fresh.nbytes


def measure_storing(answer: Any) -> float:
    """Return the seconds that each byte takes into a store, compression included."""
    import zarr

    if not _is_plain(answer):
        return 0.0
    nbytes: int = answer.nbytes
    with tempfile.TemporaryDirectory(prefix="barrow-") as folder:
        try:
            array = zarr.create_array(
                f"{folder}/probe.zarr",
                shape=answer.shape,
                dtype=answer.dtype,
                chunks=tuple(max(1, n) for n in answer.shape),
            )
        except (TypeError, ValueError):
            return 0.0  # it will be said when the store is made
        seconds = []
        for _ in range(2):  # the first time, libraries are loaded
            start = time.perf_counter()
            array[...] = answer
            seconds.append(time.perf_counter() - start)
        return min(seconds) / nbytes


def _is_plain(answer: Any) -> bool:
    return isinstance(answer, np.ndarray) and bool(answer.nbytes) and not answer.dtype.hasobject
