"""Events that are not in the output, and why."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from barrow.units import format_count


@dataclass(frozen=True)
class Skip:
    """Events that are not in the output.

    Examples
    --------
    >>> print(Skip("data", "a.root", 0, 100, "OSError: no such file", 3))
    a.root of 'data', events 0 to 100, tried 3 times: OSError: no such file
    """

    dataset: str
    path: str
    start: int
    stop: int | None
    """None for the end of a file that could not be opened."""
    reason: str
    attempts: int

    def __str__(self) -> str:
        events = "all events" if self.stop is None else f"events {self.start} to {self.stop}"
        tried = format_count(self.attempts, "time")
        return f"{self.path} of '{self.dataset}', {events}, tried {tried}: {self.reason}"


def join_skips(skips: Iterable[Skip]) -> tuple[Skip, ...]:
    """Return what was left out with neighbours joined that have the same reason.

    Examples
    --------
    >>> parts = [Skip("d", "a.root", n, n + 1, "ValueError: no", 1) for n in (3, 4, 8)]
    >>> [(skip.start, skip.stop) for skip in join_skips(parts)]
    [(3, 5), (8, 9)]
    """
    joined: list[Skip] = []
    for skip in skips:
        last = joined[-1] if joined else None
        longer = None if last is None else replace(last, stop=skip.stop)
        is_next = last is not None and last.stop == skip.start
        if longer is not None and is_next and longer == replace(skip, start=longer.start):
            joined[-1] = longer
        else:
            joined.append(skip)
    return tuple(joined)
