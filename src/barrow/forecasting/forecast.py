"""A forecast: what a run would take with some numbers of workers, and where it stops to scale."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from barrow.forecasting.bounds import NAMES
from barrow.planning.choosing import choose
from barrow.reporting.content import Row
from barrow.reporting.figure import SECONDS, Figure
from barrow.reporting.figure_of_curves import Line, Sheet, draw_curves
from barrow.reporting.study import Shown, Study
from barrow.units import format_bytes, format_count, format_seconds

FORMAT = 1
"""Version of its JSON."""


@dataclass(frozen=True)
class Point:
    """One number of workers, and what is foreseen for it."""

    workers: int
    threads: int
    """Tasks at once in each: fewer than it has threads, if its memory has no room for more."""
    seconds: float
    low_seconds: float
    """With ``high_seconds``: 9 of 10 times it should lie between them."""
    high_seconds: float
    core_hours: float
    """Held by all workers from the beginning to the end."""
    worker_bytes: int
    """Most that a worker holds."""
    total_bytes: int
    """Most that all of them hold together, with the client."""
    scarce: str
    """What decides the time: a name of :data:`barrow.forecasting.bounds.NAMES`."""
    is_oversubscribed: bool = False


@dataclass(frozen=True)
class Forecast(Shown):
    """What :func:`barrow.what_if` foresees; print it, show it in a notebook, or save it."""

    name: str
    tasks: int
    points: tuple[Point, ...]
    measured_workers: int
    measured_seconds: float
    """Of the run; for a plan that has not run, what it predicts."""
    is_run: bool
    last_workers: int
    """So many have something to do; more of them bring little."""
    stopper: str
    """What stops it there: a name of :data:`barrow.forecasting.bounds.NAMES`."""
    held_workers: float
    """How many there were on average: what autoscaling held, where it was asked for."""
    most_held: int

    @property
    def seconds(self) -> float:
        """Predicted for the first number of workers."""
        return self.points[0].seconds

    @property
    def choice(self) -> int:
        """The number of workers to choose: the fewest that are about as fast as any."""
        return self._chosen.workers

    @property
    def why(self) -> str:
        """The reason, with its numbers."""
        chosen = self._chosen
        cost = f"{format_seconds(chosen.seconds)}, {format_hours(chosen.core_hours)}"
        if len(self.points) == 1:
            return f"{cost}; {self._say_end()}"
        fastest = min(self.points, key=lambda point: point.seconds)
        if fastest is chosen:
            return f"{cost}, the fastest of all; {self._say_end()}"
        gain = 1 - fastest.seconds / chosen.seconds
        more = f"{fastest.workers:,} would be only {gain:.0%} faster"
        return f"{cost}; {more}, for {format_hours(fastest.core_hours)}. {self._say_end(True)}"

    @property
    def _chosen(self) -> Point:
        return self.points[choose([point.seconds for point in self.points])]

    def _say_end(self, is_sentence: bool = False) -> str:
        said = f"from {format_count(self.last_workers, 'worker')} on the limit is "
        said += f"{NAMES[self.stopper]}."
        return said[0].upper() + said[1:] if is_sentence else said

    def to_json(self) -> str:
        """Return all numbers as JSON text."""
        found = {**asdict(self), "choice": self.choice, "why": self.why}
        return json.dumps({"barrow_what_if": FORMAT, **found}, indent=2)

    def study(self) -> Study:
        """Return what is shown: a sentence, a table and a figure."""
        took = "took" if self.is_run else "is planned to take"
        notes = [
            f"With {format_count(self.measured_workers, 'worker')} it {took} "
            f"{format_seconds(self.measured_seconds)}.",
        ]
        if self.is_run and self.most_held > 1:
            notes.append(
                f"{self.choice:,} would be the ideal number here; it held {self.held_workers:.1f} "
                f"on average, {self.most_held:,} at most."
            )
        more = [point.workers for point in self.points if point.is_oversubscribed]
        if more:
            which = ", ".join(f"{number:,}" for number in more)
            notes.append(f"More workers than cores, which they share: {which}.")
        return Study(
            title=f"What if '{self.name}', {format_count(self.tasks, 'task')}",
            headline=f"Choose {format_count(self.choice, 'worker')}: {self.why}",
            head=("workers", "time", "from … to", "core-hours", "a worker", "together", "limit"),
            rows=tuple(self._list_cells(point) for point in self.points),
            notes=tuple(notes),
            figures=(draw_forecast(self),),
        )

    def outlook(self) -> tuple[Row, ...]:
        """Return what a report says: what is ideal, what was held, and where it ends."""
        rows = [
            Row("ideal number of workers", f"{self.choice:,}: {self.why}", self.choice),
            Row("workers on average", f"{self.held_workers:.1f}", self.held_workers),
        ]
        if self.most_held != round(self.held_workers):
            rows.append(Row("workers at most", f"{self.most_held:,}", self.most_held))
        return tuple(rows)

    def _list_cells(self, point: Point) -> tuple[str, ...]:
        is_chosen = point is self._chosen and len(self.points) > 1
        return (
            f"{point.workers:,}{' *' if is_chosen else ''}",
            format_seconds(point.seconds),
            f"{format_seconds(point.low_seconds)} … {format_seconds(point.high_seconds)}",
            f"{point.core_hours:.3g}",
            format_bytes(point.worker_bytes),
            format_bytes(point.total_bytes),
            point.scarce,
        )


def draw_forecast(forecast: Forecast) -> Figure:
    """Return the figure of foreseen times over workers, with what was measured."""
    points = forecast.points
    first = points[0]
    sheet = Sheet(
        "more",
        "Foreseen time for each number of workers",
        "Foreseen by simulation from what was measured. "
        f"Dashed: if all workers were worth as much as the first {first.workers:,}."
        if first.workers > 1
        else "Foreseen by simulation from what was measured. Dashed: if every worker were worth "
        "as much as the first.",
        "workers",
        "time",
        SECONDS,
        format_seconds,
        ticks=choose_ticks([point.workers for point in points]),
    )
    numbers = [point.workers for point in points]
    least = min(point.seconds for point in points) / 2
    ideal = [(n, first.workers * first.seconds / n) for n in _between(numbers)]
    ideal = [(n, seconds) for n, seconds in ideal if seconds >= least]
    lines = [
        Line("ideal", *_columns(ideal), "muted", dash="dashed", marker=""),
        Line(
            "foreseen",
            numbers,
            [point.seconds for point in points],
            "c0",
            low=[point.low_seconds for point in points],
            high=[point.high_seconds for point in points],
            says=[
                f"{format_count(point.workers, 'worker')}: {format_seconds(point.seconds)}, "
                f"{format_hours(point.core_hours)}; limit: {NAMES[point.scarce]}"
                for point in points
            ],
        ),
    ]
    if forecast.is_run:
        place = [forecast.measured_workers], [forecast.measured_seconds]
        lines.append(Line("this run", *place, "c1", marker="diamond"))
    return draw_curves(sheet, lines)


def choose_ticks(numbers: Sequence[int], most: int = 12) -> list[tuple[float, str]]:
    """Return labels for numbers of workers: not more than can be read.

    Examples
    --------
    >>> choose_ticks([1, 2, 1000])
    [(1, '1'), (2, '2'), (1000, '1,000')]
    """
    step = -(-len(numbers) // most)
    return [(number, f"{number:,}") for number in numbers[::step]]


def format_hours(hours: float) -> str:
    """Return core-hours in words.

    Examples
    --------
    >>> format_hours(12.345), format_hours(0.00012)
    ('12.3 core-hours', '0.00012 core-hours')
    """
    return f"{hours:.3g} core-hours"


def _between(numbers: Sequence[int]) -> list[float]:
    low, high = numbers[0], numbers[-1]
    return [low * (high / low) ** (step / 24) for step in range(25)] if high > low else [low]


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]
