"""A run at a glance: what fits on one screen while it goes on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ProcessGlance:
    """One process that takes part."""

    name: str
    kind: str
    """Client, scheduler, worker or other."""
    held_bytes: int
    limit_bytes: int | None
    spilled_bytes: int
    cores: float | None
    """How many it keeps busy."""


@dataclass(frozen=True)
class Glance:
    """How far a run is and how it fares, at one moment."""

    name: str
    status: str
    seconds: float
    """Since it began, or which it took."""
    noun: str
    """What is counted: chunks of barrow's own, or tasks of Dask's."""
    done: int
    planned: int | None
    """How many there will be, as far as is known."""
    failed: int
    rate: float
    """Of late, for each second."""
    processes: tuple[ProcessGlance, ...]
    peak_bytes: int
    """Most that all processes held together."""
    notes: tuple[tuple[float, str], ...] = ()
    """What happened last that somebody should know: seconds since the begin, and a sentence."""

    @property
    def left_seconds(self) -> float | None:
        """How long it will take at this rate; None if nobody can tell.

        Examples
        --------
        >>> Glance("fit", "running", 9.0, "task", 30, 50, 0, 4.0, (), 0).left_seconds
        5.0
        """
        if self.planned is None or not self.rate or self.status != "running":
            return None
        return max(0, self.planned - self.done) / self.rate
