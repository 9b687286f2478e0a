"""How work scales with the number of workers: time, memory, and the number to choose."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from barrow.planning.choosing import choose
from barrow.reporting.figure import BYTES, SECONDS, Figure, choose_unit, name_line
from barrow.reporting.figure_of_curves import Line, Sheet, draw_curves
from barrow.reporting.study import Shown, Study
from barrow.studying.repeat import Repeats
from barrow.units import format_bytes, format_count, format_seconds

FORMAT = 1
"""Version of its JSON."""


@dataclass(frozen=True)
class Setting:
    """One number of workers, and what the work took with it."""

    workers: int
    taken: Repeats
    speed_up: float
    """How many times as fast as with the fewest workers."""
    efficiency: float
    """Of the workers that were added, how much of each was gained; 1 is ideal."""
    is_oversubscribed: bool
    """Whether there are more workers than cores."""


@dataclass(frozen=True)
class Scaling(Shown):
    """What :func:`barrow.scaling` has measured; print it, show it in a notebook, or save it."""

    name: str
    cores: int
    settings: tuple[Setting, ...]

    @classmethod
    def of(cls, name: str, cores: int, found: Sequence[tuple[int, Repeats]]) -> "Scaling":
        """Return the scaling of some work from numbers of workers and what it took with each."""
        ordered = sorted(found, key=lambda pair: pair[0])
        fewest, base = ordered[0]
        settings = []
        for workers, taken in ordered:
            speed_up = base.seconds / max(1e-9, taken.seconds)
            efficiency = speed_up * fewest / workers
            settings.append(Setting(workers, taken, speed_up, efficiency, workers > cores))
        return cls(name, cores, tuple(settings))

    @property
    def choice(self) -> int:
        """The number of workers to choose: the fewest that are about as fast as any."""
        return self._chosen.workers

    @property
    def why(self) -> str:
        """The reason, with its numbers."""
        return explain(self.settings, self._chosen)

    @property
    def _chosen(self) -> Setting:
        return self.settings[choose([setting.taken.seconds for setting in self.settings])]

    def to_json(self) -> str:
        """Return all numbers as JSON text."""
        return json.dumps(
            {"barrow_scaling": FORMAT, **asdict(self), "choice": self.choice, "why": self.why},
            indent=2,
        )

    def study(self) -> Study:
        """Return what is shown: a sentence, a table and two figures."""
        repeats = format_count(len(self.settings[0].taken.repeats), "repeat")
        more = [setting.workers for setting in self.settings if setting.is_oversubscribed]
        notes: tuple[str, ...] = ()
        if more:
            which = " and ".join(map(str, more))
            notes = (
                f"{which} workers are oversubscribed: there are {self.cores} cores, which they "
                "have to share.",
            )
        return Study(
            title=f"Scaling of '{self.name}' on {format_count(self.cores, 'core')}, {repeats}",
            headline=f"Choose {format_count(self.choice, 'worker')}: {self.why}",
            head=(
                "workers",
                "time",
                "from … to",
                "speed-up",
                "efficiency",
                "largest worker",
                "client",
                "all together",
            ),
            rows=tuple(_list_cells(setting, setting is self._chosen) for setting in self.settings),
            notes=notes,
            figures=(draw_time(self), draw_memory(self)),
        )


def explain(settings: Sequence[Setting], chosen: Setting) -> str:
    """Return why a number of workers was chosen."""
    if len(settings) == 1:
        return "no other number was tried."
    first, others = settings[0], [setting for setting in settings if setting is not chosen]
    fastest = min(settings, key=lambda setting: setting.taken.seconds)
    said = f"{format_seconds(chosen.taken.seconds)}"
    if chosen is not first:
        said += (
            f", {chosen.speed_up:.2f} times as fast as {format_count(first.workers, 'worker')} "
            f"({chosen.efficiency:.0%} of the ideal)"
        )
    if fastest is not chosen:
        gain = 1 - fastest.taken.seconds / chosen.taken.seconds
        return f"{said}; {fastest.workers} would be only {gain:.0%} faster."
    slower = [setting for setting in others if setting.workers > chosen.workers]
    if not slower:
        return f"{said}; more were not tried."
    change = slower[0].taken.seconds / chosen.taken.seconds - 1
    return f"{said}; {slower[0].workers} take {change:.0%} longer."


def draw_time(scaling: Scaling) -> Figure:
    """Return the figure of time over workers, with what would be ideal."""
    numbers = [setting.workers for setting in scaling.settings]
    taken = [setting.taken for setting in scaling.settings]
    work = numbers[0] * taken[0].seconds
    sheet = Sheet(
        "time",
        "Time for each number of workers",
        "Median of the repeats, and from the shortest to the longest. On the dashed line every "
        "worker would be worth as much as the first.",
        "workers",
        "time",
        SECONDS,
        format_seconds,
        ticks=[(number, str(number)) for number in numbers],
    )
    steps = [numbers[0] * (numbers[-1] / numbers[0]) ** (i / 24) for i in range(25)]
    lines = [
        Line("ideal", steps, [work / n for n in steps], "muted", dash="dashed", marker=""),
        Line(
            "measured",
            numbers,
            [repeats.seconds for repeats in taken],
            "c0",
            low=[repeats.least_seconds for repeats in taken],
            high=[repeats.most_seconds for repeats in taken],
            says=[
                f"{format_count(setting.workers, 'worker')}: "
                f"{format_seconds(setting.taken.seconds)}, {setting.efficiency:.0%} efficient"
                for setting in scaling.settings
            ],
        ),
    ]
    return draw_curves(sheet, lines)


def draw_memory(scaling: Scaling) -> Figure:
    """Return the figure of memory over time: all settings begin at 0."""
    longest = max(setting.taken.typical.seconds for setting in scaling.settings)
    factor, unit = choose_unit(longest, SECONDS)
    sheet = Sheet(
        "memory",
        "Memory of all processes over time",
        "What all processes held together, the client included; of each setting the repeat with "
        "the median time. All begin at the left.",
        f"time since the work began ({unit})",
        "memory",
        BYTES,
        format_bytes,
    )
    lines = []
    for number, setting in enumerate(scaling.settings):
        repeat = setting.taken.typical
        times = [when / factor for when in repeat.times]
        label = format_count(setting.workers, "worker")
        lines.append(Line(label, times, repeat.held_bytes, name_line(number), marker=""))
    return draw_curves(sheet, lines)


def _list_cells(setting: Setting, is_chosen: bool) -> tuple[str, ...]:
    taken = setting.taken
    return (
        f"{setting.workers}{' *' if is_chosen else ''}",
        format_seconds(taken.seconds),
        f"{format_seconds(taken.least_seconds)} … {format_seconds(taken.most_seconds)}",
        f"{setting.speed_up:.2f}",
        f"{setting.efficiency:.0%}",
        format_bytes(taken.worker_bytes),
        format_bytes(taken.client_bytes),
        format_bytes(taken.total_bytes),
    )
