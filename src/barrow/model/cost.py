"""A cost: what probing found out about a step."""

import math
from dataclasses import dataclass

MEMORY_MARGIN = 0.05
"""Least share by which a peak may lie above its prediction."""


@dataclass(frozen=True)
class Cost:
    """Seconds and peak memory of one task, as functions of the items it reads.

    Items are elements of all inputs of a chunk, halo included. The peak is what
    the task holds at most, its inputs and its answer included. Time does not
    grow in proportion (caches, allocation), so it is kept as measured points.

    Examples
    --------
    >>> cost = Cost(points=((1000, 0.001), (100_000, 0.05)), peak_per_item=16.0)
    >>> cost.seconds(1000), round(cost.seconds(10_000), 4), cost.seconds(200_000)
    (0.001, 0.0071, 0.1)
    >>> cost.peak_bytes(1000), round(cost.peak_bound(1000))
    (16000.0, 16800)
    """

    points: tuple[tuple[int, float], ...] = ()
    """Items and seconds of tasks that were measured, smallest first."""
    spread: float = 0.0
    """Relative scatter of the time over different places of the data."""
    peak_base_bytes: float = 0.0
    peak_per_item: float = 0.0
    peak_margin: float = MEMORY_MARGIN
    """Share by which the upper bound of the peak lies above its prediction."""
    thread_gain: float = 1.0
    """How many times more work all cores do in threads of one process than one thread."""
    process_gain: float = 1.0
    """The same for one process on each core."""
    write_seconds_per_byte: float = 0.0
    """Of the answer, into its store."""
    startup_seconds: float = 0.0
    """What the first call in a new process costs on top: imports, compilation, caches."""

    @property
    def is_measured(self) -> bool:
        """Whether time was measured; it is not worth it for tiny data."""
        return bool(self.points)

    def seconds(self, items: float) -> float:
        """Return the predicted time of one task, without writing."""
        if not self.points or items <= 0:
            return 0.0
        first, last = self.points[0], self.points[-1]
        if items <= first[0]:
            # Small tasks have a price of their own; it shows in the two smallest points.
            return max(0.0, _base(self.points) + (first[1] - _base(self.points)) * items / first[0])
        if items >= last[0]:
            return last[1] * items / last[0]
        for (low, low_seconds), (high, high_seconds) in zip(
            self.points, self.points[1:], strict=False
        ):
            if items <= high:
                share = math.log(items / low) / math.log(high / low)
                return math.exp(
                    (1 - share) * math.log(low_seconds) + share * math.log(high_seconds)
                )
        raise AssertionError("unreachable")

    def peak_bytes(self, items: float) -> float:
        """Return the predicted peak memory of one task."""
        return self.peak_base_bytes + self.peak_per_item * items

    def peak_bound(self, items: float) -> float:
        """Return what the peak should never exceed."""
        return self.peak_bytes(items) * (1 + self.peak_margin)

    def items_within(self, budget_bytes: float) -> int:
        """Return how many items a task may read so that the bound of its peak fits a budget."""
        if self.peak_per_item <= 0:
            return 2**62
        room = budget_bytes / (1 + self.peak_margin) - self.peak_base_bytes
        return max(0, int(room / self.peak_per_item))


def _base(points: tuple[tuple[int, float], ...]) -> float:
    """Return the part of the time of the smallest tasks that does not depend on their size."""
    if len(points) < 2:
        return 0.0
    (low, low_seconds), (high, high_seconds) = points[:2]
    slope = (high_seconds - low_seconds) / (high - low)
    return min(low_seconds, max(0.0, low_seconds - slope * low))
