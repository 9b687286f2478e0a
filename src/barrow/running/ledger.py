"""Tell whether a stored chunk is what its task wrote.

A checksum of its values is noted when a chunk is done. A run that is taken up
again reads what is stored and compares: a chunk that was torn by a crash, altered
or lost is done again.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import google_crc32c
import numpy as np

from barrow.model.grid import Grid
from barrow.running.sinks import ZarrSink

# Chunks that are looked at in one go, so that a million are never waited for at once.
AT_ONCE = 1000


def checksum(block: np.ndarray) -> int | None:
    """Return a number that changes when a value does; None for values that are objects.

    Examples
    --------
    >>> checksum(np.array([1.0, 2.0])) == checksum(np.array([1.0, 2.5]))
    False
    """
    if block.dtype.hasobject:
        return None
    if not block.size:
        return 0
    return int(google_crc32c.value(np.ascontiguousarray(block).reshape(-1).view(np.uint8)))


def find_damaged(
    sink: ZarrSink, grid: Grid, checksums: Mapping[int, int | None], threads: int
) -> set[int]:
    """Return the chunks that are not stored as they were written."""

    def is_damaged(number: int) -> bool:
        if number not in range(len(grid)):
            return True  # the record itself is damaged
        try:
            return checksum(sink.read(grid.ranges(number))) != checksums[number]
        except Exception:
            # Whatever the codec or the disk says about it: it cannot be read.
            return True

    numbers: Iterator[int] = iter(checksums)
    damaged: set[int] = set()
    with ThreadPoolExecutor(threads) as pool:
        while some := list(islice(numbers, AT_ONCE)):
            found = pool.map(is_damaged, some)
            damaged.update(n for n, is_bad in zip(some, found, strict=True) if is_bad)
    return damaged
