"""Read once what is measured many times, where reading takes long.

A frame of a movie that is stored in columns of pixels takes as long to read as the whole
movie. A function that is timed at several sizes, alone and side by side, would then spend
the time on reading the same storage chunks again and again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from barrow.model.applied import leaf_ranges, leaves, rebind
from barrow.model.reading import count_block_bytes, count_stored_bytes
from barrow.model.source import Reader, Source
from barrow.probing.sizes import Sample
from barrow.shared import Ranges

# What takes longer to read is read once.
DEAR_SECONDS = 0.1
# Around the smallest sample, so much may be kept for the larger ones.
WINDOW_BYTES = 2**26


@dataclass(frozen=True)
class Window(Reader):
    """Read from a part of an array that is in memory."""

    part: np.ndarray
    ranges: Ranges
    """Where the part lies in the array."""

    def __call__(self, ranges: Ranges) -> np.ndarray:
        pairs = zip(ranges, self.ranges, strict=True)
        found = self.part[
            tuple(slice(low - start, high - start) for (low, high), (start, _) in pairs)
        ]
        found.flags.writeable = False
        return found


@dataclass(frozen=True)
class Ahead:
    """What was read ahead."""

    target: Source
    """The chain of steps, on what is in memory."""
    samples: list[Sample]
    """The sizes that lie within."""
    read_seconds_per_byte: float
    """Of whole storage chunks."""


def read_ahead(target: Source, samples: Sequence[Sample]) -> Ahead | None:
    """Return the chain of steps with its samples in memory; None where reading is quick."""
    window = samples[0].blocks[0]
    if not _is_dear(target, window):
        return None
    chosen = [samples[0]]
    for sample in samples[1:]:
        pairs = zip(window, sample.blocks[0], strict=True)
        wider = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs)
        if count_block_bytes(target, wider) > WINDOW_BYTES:
            break
        chosen.append(sample)
        window = wider
    start = time.perf_counter()
    parts = _read(target, window)
    seconds = time.perf_counter() - start
    windows = (Window(*pair) for pair in zip(parts, leaf_ranges(target, window), strict=True))
    return Ahead(
        rebind(target, windows),
        [Sample(sample.items, sample.blocks[:1]) for sample in chosen],
        seconds / max(1, count_stored_bytes(target, window)),
    )


def _is_dear(target: Source, block: Ranges) -> bool:
    if count_stored_bytes(target, block) > WINDOW_BYTES:
        return True
    start = time.perf_counter()
    _read(target, block)
    return time.perf_counter() - start > DEAR_SECONDS


def _read(target: Source, block: Ranges) -> list[np.ndarray]:
    pairs = zip(leaves(target), leaf_ranges(target, block), strict=True)
    return [leaf.read(part) for leaf, part in pairs]
