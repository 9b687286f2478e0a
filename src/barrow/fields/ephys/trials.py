"""Walk through a block of trials in pieces.

A block is an array of trial × time × channel. Trials that are shorter than the
block are padded at their end; how long each is comes as a second array.
"""

from collections.abc import Iterator

import numpy as np

# Pieces of about this many samples stay in the cache of a core while they are worked on.
PIECE_SAMPLES = 2**17


def pieces(
    block: np.ndarray, lengths: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray | slice, slice, np.ndarray]]:
    """Yield which trials, which channels, and their samples; all of one length.

    Examples
    --------
    >>> block = np.zeros((3, 8, 2))
    >>> [(t, x.shape) for t, _, x in pieces(block, np.array([8, 8, 5]))]
    [(array([2]), (1, 5, 2)), (array([0, 1]), (2, 8, 2))]
    """
    trials, samples, channels = block.shape
    groups: list[tuple[int, np.ndarray | None]] = [(samples, None)]
    if lengths is not None and (lengths != samples).any():
        groups = [(int(n), np.flatnonzero(lengths == n)) for n in np.unique(lengths)]
    for length, members in groups:
        count = trials if members is None else members.size
        width = max(1, min(channels, PIECE_SAMPLES // max(length, 1)))
        # Not a last piece of a single channel: half of a vector register would idle.
        width = -(-channels // -(-channels // width)) if channels else 1
        step = max(1, PIECE_SAMPLES // max(1, length * channels)) if width == channels else 1
        for first in range(0, count, step):
            which: np.ndarray | slice = slice(first, min(first + step, count))
            if members is not None:
                which = members[which]
            for low in range(0, channels, width):
                part = slice(low, min(low + width, channels))
                yield which, part, block[which, :length, part]
