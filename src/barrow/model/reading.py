"""What a task reads for one block of an answer: how many items, how many stored bytes.

Arithmetic on ranges: nothing is read here.
"""

from collections.abc import Mapping
from math import prod

from barrow.model.applied import Apply, leaf_ranges, leaves
from barrow.model.grid import Grid
from barrow.model.source import Source
from barrow.shared import Ranges

# To read through steps for a sample, no more than this may be read ...
MUCH_BYTES = 2**26
# ... or else no more than this share of everything.
MUCH_SHARE = 0.03


def block_at(target: Source, lengths: Mapping[str, int], place: float) -> Ranges:
    """Return a block of these lengths at a place between the beginning (0) and the end (1).

    Examples
    --------
    >>> import barrow, numpy as np
    >>> block_at(barrow.open(np.zeros(100), dims=("x",)), {"x": 10}, 0.5)
    ((50, 60),)
    """
    ranges = []
    for dim, length in target.lengths.items():
        size = min(length, lengths[dim])
        grid = Grid({dim: length}, {dim: max(1, size)})
        start = min(grid.ranges(int(len(grid) * place))[0][0], length - size)
        ranges.append((start, start + size))
    return tuple(ranges)


def count_items(target: Source, ranges: Ranges) -> int:
    """Return how many items a task on this block reads, halo included."""
    blocks = leaf_ranges(target, ranges)
    return max(1, sum(prod(stop - start for start, stop in block) for block in blocks))


def count_block_bytes(target: Source, ranges: Ranges) -> int:
    """Return how many bytes the blocks that a task reads have in memory."""
    pairs = zip(leaves(target), leaf_ranges(target, ranges), strict=True)
    return sum(
        prod(stop - start for start, stop in block) * leaf.dtype.itemsize for leaf, block in pairs
    )


def is_much(source: Source, ranges: Ranges) -> bool:
    """Return whether a block of the answer of steps needs too much to be computed as a sample.

    A step that needs all frames, on one that needs whole images, needs everything
    for each pixel.
    """
    if not isinstance(source.read, Apply):
        return False
    size = count_block_bytes(source, ranges)
    return size > MUCH_BYTES and size > MUCH_SHARE * count_block_bytes(source, source.everything)


def count_stored_bytes(target: Source, ranges: Ranges) -> int:
    """Return how many bytes come from storage, where a chunk that is cut is read whole.

    Examples
    --------
    >>> import barrow, numpy as np, dask.array
    >>> source = barrow.open(dask.array.zeros(100, chunks=10, dtype="u1"))
    >>> count_stored_bytes(source, ((5, 25),))
    30
    """
    total = 0
    for leaf, block in zip(leaves(target), leaf_ranges(target, ranges), strict=True):
        items = 1
        for (start, stop), grain, length in zip(
            block, leaf.grain.values(), leaf.shape, strict=True
        ):
            items *= min(length, -(-stop // grain) * grain) - start // grain * grain
        total += items * leaf.dtype.itemsize
    return total
