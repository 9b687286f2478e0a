"""The life of a job: from its submission to its end, when it hands over, how many may be lost."""

import time
from dataclasses import dataclass, field
from math import inf


@dataclass
class Job:
    """One job of this cluster, from its submission to its end."""

    id: int
    worker: str
    """Name of its worker."""
    state: str = "PENDING"
    reason: str = ""
    left_seconds: float = inf
    """Until its walltime is over."""
    has_come: bool = False
    """Whether its worker has reached the scheduler."""
    is_leaving: bool = False
    """Whether it was asked to end."""
    lost_seconds: float | None = None
    """When its worker was lost."""
    asked_seconds: float = field(default_factory=time.monotonic)
    """When it was asked for."""

    @property
    def is_live(self) -> bool:
        """Whether it counts among those that are wanted."""
        is_ending = self.state in ("COMPLETING", "STOPPED")
        return not self.is_leaving and self.lost_seconds is None and not is_ending


def choose_margin(walltime_seconds: float | None) -> float:
    """Return how long before its end a job is asked to hand over.

    Examples
    --------
    >>> choose_margin(3600), choose_margin(86400), choose_margin(60)
    (360.0, 600.0, 20.0)
    """
    return min(600.0, max(20.0, 0.1 * (walltime_seconds or inf)))


def count_most_lost(wanted: int) -> int:
    """Return how many jobs may be lost before no more are asked for.

    A chunk that kills its worker costs three of them before it is split.

    Examples
    --------
    >>> count_most_lost(1), count_most_lost(8)
    (13, 34)
    """
    return 3 * wanted + 10
