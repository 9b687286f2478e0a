"""A chunk that was left out because it could not be computed."""

from dataclasses import dataclass

from barrow.model.grid import format_ranges
from barrow.shared import Ranges
from barrow.units import format_count


@dataclass(frozen=True)
class Skipped:
    """A chunk of a result that holds no answer.

    Examples
    --------
    >>> print(Skipped("denoise", 7, ((0, 10), (20, 30)), "ValueError: no photons", 1))
    chunk 7 ([0:10, 20:30]) of 'denoise', tried 1 time: ValueError: no photons
    """

    step: str
    """Name of the work it belongs to."""
    chunk: int
    """Its number in the plan's grid."""
    ranges: Ranges
    """Where it lies in the result: start and stop for each dimension."""
    reason: str
    """What was raised, and what the function was called with."""
    attempts: int
    """How many times it was tried."""

    def __str__(self) -> str:
        where = f"chunk {self.chunk} ({format_ranges(self.ranges)}) of '{self.step}'"
        return f"{where}, tried {format_count(self.attempts, 'time')}: {self.reason}"
