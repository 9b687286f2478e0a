"""Read a block that needs little of many storage chunks, without holding them all.

A storage chunk is decoded whole. One frame of a movie that is stored in columns of
pixels through all frames needs every chunk there is, and a library that decodes many
of them at once then holds the whole movie for the sake of that frame.
"""

from math import prod
from typing import Any

import numpy as np

from barrow.shared import Ranges
from barrow.sources.blocks import to_index

# So much may be decoded at once beyond what is wanted.
MOST_BYTES = 2**26


def read_in_parts(
    array: Any, ranges: Ranges, chunks: tuple[int, ...], most_bytes: int = MOST_BYTES
) -> np.ndarray:
    """Return a block of a stored array, read in parts where all its chunks would be too much.

    Parameters
    ----------
    chunks
        Lengths of the storage chunks.

    Examples
    --------
    >>> stored = np.arange(24).reshape(4, 6)
    >>> read_in_parts(stored, ((1, 2), (0, 6)), (4, 2), most_bytes=100)
    array([[ 6,  7,  8,  9, 10, 11]])
    """
    itemsize = array.dtype.itemsize
    wanted = prod(stop - start for start, stop in ranges) * itemsize
    if count_decoded(ranges, chunks) * itemsize <= most_bytes + 2 * wanted:
        return np.asarray(array[to_index(ranges)], array.dtype)
    axis, middle = _find_middle(ranges, chunks)
    if axis is None:
        return np.asarray(array[to_index(ranges)], array.dtype)
    block = np.empty([stop - start for start, stop in ranges], array.dtype)
    start, stop = ranges[axis]
    for low, high in ((start, middle), (middle, stop)):
        part = (*ranges[:axis], (low, high), *ranges[axis + 1 :])
        inside = (slice(None),) * axis + (slice(low - start, high - start),)
        block[inside] = read_in_parts(array, part, chunks, most_bytes)
    return block


def count_decoded(ranges: Ranges, chunks: tuple[int, ...]) -> int:
    """Return how many items the storage chunks have that a block touches.

    Examples
    --------
    >>> count_decoded(((1, 2), (3, 5)), (4, 2))
    16
    """
    pairs = zip(ranges, chunks, strict=True)
    return prod((-(-stop // size) - start // size) * size for (start, stop), size in pairs)


def _find_middle(ranges: Ranges, chunks: tuple[int, ...]) -> tuple[int | None, int]:
    """Return where to cut a block between storage chunks: the axis, and the place along it."""
    counts = [
        -(-stop // size) - start // size for (start, stop), size in zip(ranges, chunks, strict=True)
    ]
    if max(counts, default=1) < 2:
        return None, 0
    axis = counts.index(max(counts))
    return axis, (ranges[axis][0] // chunks[axis] + counts[axis] // 2) * chunks[axis]
