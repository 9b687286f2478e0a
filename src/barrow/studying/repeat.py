"""One execution of the work that is studied: how long it took, and what its processes held."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

import numpy as np

MOST_POINTS = 300
"""Of a curve over time: more cannot be told apart."""
AROUND_SECONDS = 1.0
"""What a process held so long before the work began is what it began with; work of a moment is
seen only after its end."""


class Tables(Protocol):
    """A record, as far as it is needed here."""

    def columns(self, name: str) -> dict[str, list[Any]]:
        """Return one table, column by column."""


@dataclass(frozen=True)
class Repeat:
    """One execution."""

    seconds: float
    worker_bytes: int = 0
    """Most that a single worker held."""
    client_bytes: int = 0
    """Most that the program itself held, scheduler included where it lives there."""
    total_bytes: int = 0
    """Most that all processes held together, the client included."""
    times: tuple[float, ...] = ()
    """Seconds since the work began, with ``held_bytes``: what all processes held then."""
    held_bytes: tuple[int, ...] = ()


def read_repeat(record: Tables, began: float, ended: float) -> Repeat:
    """Return what a record says of the time between two moments."""
    samples, processes = record.columns("sample"), record.columns("process")
    kinds = dict(zip(processes["name"], processes["kind"], strict=True))
    gone = {
        name: left
        for name, left in zip(processes["name"], processes["left"], strict=True)
        if left is not None
    }
    rows = sorted(
        (when, name, held)
        for when, name, held in zip(
            samples["time"], samples["process"], samples["rss_bytes"], strict=True
        )
        if began - AROUND_SECONDS <= when <= ended + AROUND_SECONDS
    )
    times, totals = add_up(rows, gone, ended)
    most: dict[str, int] = {}
    for _, name, held in rows:
        kind = "worker" if kinds.get(name) == "worker" else "client"
        if kind == "worker" or kinds.get(name) == "client":
            most[kind] = max(held, most.get(kind, 0))
    return Repeat(
        ended - began,
        worker_bytes=most.get("worker", 0),
        client_bytes=most.get("client", 0),
        total_bytes=int(max(totals, default=0)),
        times=tuple(round(min(max(0.0, when - began), ended - began), 3) for when in times),
        held_bytes=tuple(int(held) for held in totals),
    )


def add_up(
    rows: Sequence[tuple[float, str, int]], gone: dict[str, float], ended: float
) -> tuple[list[float], list[float]]:
    """Return what all processes held together, over time; of very many points the highest.

    A process holds what was seen of it last, until it is gone.

    Examples
    --------
    >>> rows = [(0.0, "a", 10), (1.0, "b", 5), (2.0, "a", 20)]
    >>> add_up(rows, {"b": 3.0}, ended=4.0)
    ([0.0, 1.0, 2.0, 3.0], [10.0, 15.0, 25.0, 20.0])
    """
    held: dict[str, int] = {}
    changes = []
    for when, name, now in rows:
        changes.append((when, now - held.get(name, 0)))
        held[name] = now
    changes += [(left, -held[name]) for name, left in gone.items() if name in held and left < ended]
    if not changes:
        return [], []
    changes.sort(key=lambda change: change[0])
    times = np.array([when for when, _ in changes])
    totals = np.cumsum([change for _, change in changes], dtype=float)
    # All processes are seen at the same moment: only the last of these counts.
    is_last = np.append(np.diff(times) > 0, True)
    times, totals = times[is_last], totals[is_last]
    if len(times) > MOST_POINTS:
        parts = np.linspace(0, len(times), MOST_POINTS + 1).astype(int)[:-1]
        highest = [
            first + int(np.argmax(totals[first:last]))
            for first, last in zip(parts, [*parts[1:], len(times)], strict=True)
        ]
        times, totals = times[highest], totals[highest]
    return times.tolist(), totals.tolist()


@dataclass(frozen=True)
class Repeats:
    """The same work in the same setting, some times over."""

    repeats: tuple[Repeat, ...]

    @property
    def seconds(self) -> float:
        """The median time."""
        return median(repeat.seconds for repeat in self.repeats)

    @property
    def least_seconds(self) -> float:
        """The shortest time."""
        return min(repeat.seconds for repeat in self.repeats)

    @property
    def most_seconds(self) -> float:
        """The longest time."""
        return max(repeat.seconds for repeat in self.repeats)

    @property
    def worker_bytes(self) -> int:
        """Most that a single worker held in any of them."""
        return max(repeat.worker_bytes for repeat in self.repeats)

    @property
    def client_bytes(self) -> int:
        """Most that the program itself held."""
        return max(repeat.client_bytes for repeat in self.repeats)

    @property
    def total_bytes(self) -> int:
        """Most that all processes held together."""
        return max(repeat.total_bytes for repeat in self.repeats)

    @property
    def typical(self) -> Repeat:
        """The one whose time is nearest to the median."""
        middle = self.seconds
        return min(self.repeats, key=lambda repeat: abs(repeat.seconds - middle))
