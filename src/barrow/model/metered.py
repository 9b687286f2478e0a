"""Readers that note how long reading took and how much came."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from barrow.model.applied import leaves, rebind
from barrow.model.source import Reader, Source
from barrow.shared import Ranges


@dataclass
class Meter:
    """What reading took since it was last set to zero; for one thread."""

    seconds: float = 0.0
    bytes: int = 0

    def reset(self) -> None:
        """Set everything to zero."""
        self.seconds, self.bytes = 0.0, 0


@dataclass(frozen=True)
class Metered(Reader):
    """Read, and note it."""

    read: Reader
    meter: Meter

    def __call__(self, ranges: Ranges) -> np.ndarray:
        start = time.perf_counter()
        block = self.read(ranges)
        self.meter.seconds += time.perf_counter() - start
        self.meter.bytes += block.nbytes
        return block


def metered(target: Source, meter: Meter, readers: Iterator[Reader] | None = None) -> Source:
    """Return a chain of steps whose leaves are read through a meter."""
    readers = readers or (leaf.read for leaf in leaves(target))
    return rebind(target, (Metered(reader, meter) for reader in readers))
