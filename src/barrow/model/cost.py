"""A cost: what probing found out about a step."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Seconds and peak memory of one task, as functions of the items it processes.

    Items are elements of the chunk, halo not counted. Peak is what the task
    holds at most, its inputs and its answer included.
    """

    seconds_base: float
    seconds_per_item: float
    peak_base_bytes: float
    peak_per_item: float
    releases_gil: bool
    is_measured: bool = True
    """False when the data are so small that nothing was worth measuring."""

    def seconds(self, items: float) -> float:
        """Return the predicted time of one task.

        Examples
        --------
        >>> Cost(0.001, 1e-8, 0, 16, True).seconds(1_000_000)
        0.011
        """
        return self.seconds_base + self.seconds_per_item * items

    def peak_bytes(self, items: float) -> float:
        """Return the predicted peak memory of one task."""
        return self.peak_base_bytes + self.peak_per_item * items

    def items_within(self, budget_bytes: float) -> int:
        """Return how many items a task may have so that its peak fits a budget."""
        if self.peak_per_item <= 0:
            return 2**62
        return max(0, int((budget_bytes - self.peak_base_bytes) / self.peak_per_item))
