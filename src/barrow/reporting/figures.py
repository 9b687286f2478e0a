"""What the figures of a report draw: axes, layers, legends and captions, as plain data.

``draw.js`` draws them with BokehJS in the reader's browser. Making the same figures with
the Python side of Bokeh would cost every run a second or two for its import alone; see
``docs/design/reports.md``. Every number a person sees is put into words here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, log10
from typing import Any

from barrow.reporting.content import Content, Memory, Pairs, Prediction, Timeline
from barrow.reporting.tasks import PHASES
from barrow.reporting.words import shorten
from barrow.units import format_bytes, format_count, format_seconds

COLOURS = 6
"""Colours of ``page.css`` that tell things apart: named c0, c1, ..."""
MOST_LABELS = 40
LABEL_LENGTH = 22
# A limit so far above all that was held would press the lines to the ground.
FAR_ABOVE = 3.0
# Where the largest is so many times the least, an axis is logarithmic.
WIDE = 50.0

_SECONDS = ((7200, 3600, "h"), (120, 60, "min"), (1, 1, "s"), (1e-3, 1e-3, "ms"), (0, 1e-6, "µs"))
_BYTES = tuple((1024**n, 1024**n, u) for n, u in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")))
_SIGNS = {
    "death": ("bad", "x", "worker died or was lost"),
    "pause": ("ink", "square", "worker paused"),
    "spill": ("ink", "triangle", "results moved to disk"),
    "other": ("muted", "diamond", "other event"),
}


@dataclass(frozen=True)
class Axis:
    """One axis: its label with the unit, and its ends."""

    label: str
    start: float
    end: float
    ticks: list[tuple[float, str]] | None = None
    """Where the labels stand, if not wherever it suits."""
    scale: str = "linear"


@dataclass(frozen=True)
class Layer:
    """One set of like signs; columns of ``data`` have the names of Bokeh's properties."""

    glyph: str
    colour: str
    data: Mapping[str, list[Any]]
    alpha: float | str = 1.0
    """A number, or the name of a column."""
    width: float = 1.0
    dash: str = "solid"
    edge: str | None = None
    """Colour of the rim, if it is another."""
    marker: str = "circle"
    size: float = 6.0
    hover: list[tuple[str, str]] = field(default_factory=list)
    """Headings and columns that appear over a sign."""


@dataclass(frozen=True)
class Legend:
    """What a colour stands for."""

    colour: str
    text: str
    sign: str = "square"


@dataclass(frozen=True)
class Figure:
    """One figure, ready to be drawn."""

    name: str
    title: str
    caption: str
    height: int
    x: Axis
    y: Axis
    layers: list[Layer]
    legend: list[Legend] = field(default_factory=list)


def draw_figures(content: Content) -> dict[str, Figure]:
    """Return the figures of a report by their names; those with nothing to show are missing."""
    found = [
        *_draw_prediction(content.prediction),
        _draw_timeline(content.timeline, content.seconds),
        _draw_memory(content.memory, content.seconds),
    ]
    return {figure.name: figure for figure in found if figure is not None}


def _draw_timeline(timeline: Timeline, seconds: float) -> Figure | None:
    if not timeline.total:
        return None
    tasks = timeline.tasks
    ends = [a + b for a, b in zip(tasks["start"], tasks["seconds"], strict=True)]
    factor, unit = _unit(max([seconds, *ends]), _SECONDS)
    has_phases = timeline.groups == PHASES
    colours = _colours(timeline)
    layers = []
    if timeline.blocks:
        layers += _layer_blocks(timeline, factor)
    bars = _list_phases(tasks) if has_phases else _list_bars(tasks)
    for group, colour in enumerate(colours):
        of_group = [bar for bar in bars if bar[0] == group]
        layers.append(_layer_bars(of_group, tasks, colour, factor))
    is_bad = [i for i, outcome in enumerate(tasks["outcome"]) if outcome != "done"]
    legend = [
        Legend(colour, shorten(name, 60))
        for colour, name in zip(colours, timeline.groups, strict=True)
    ]
    if is_bad:
        failed = [(0, i, tasks["start"][i], tasks["seconds"][i]) for i in is_bad]
        layers.append(_layer_bars(failed, tasks, "bad", factor))
        legend.append(Legend("bad", "failed or lost"))
    n_lanes = len(timeline.lanes)
    step = -(-n_lanes // MOST_LABELS)
    ticks = [
        (lane + 0.5, shorten(name, LABEL_LENGTH))
        for lane, name in enumerate(timeline.lanes)
        if lane % step == 0
    ]
    kinds = "reading, computing and writing" if has_phases else "steps"
    caption = (
        f"What each worker did, coloured by {kinds}. Look for gaps, where a worker waited, "
        "and for one long bar at the end, for which all others waited."
    )
    if timeline.blocks:
        caption += (
            f" {len(tasks['lane']):,} of {timeline.total:,} tasks are drawn one by one; paler "
            "parts stand for many short ones: the paler, the less the worker was busy."
        )
    return Figure(
        "timeline",
        "Timeline of workers and tasks",
        caption,
        height=min(640, max(150, 90 + 26 * n_lanes)),
        x=Axis(f"time since the run began ({unit})", 0, max([seconds, *ends]) / factor or 1),
        y=Axis("", n_lanes, 0, ticks),
        layers=[layer for layer in layers if layer.data["left"]],
        legend=legend,
    )


Bar = tuple[int, int, float, float]
"""Group, number of the task, start and seconds."""


def _list_bars(tasks: Mapping[str, list[Any]]) -> list[Bar]:
    return [
        (group, i, start, seconds)
        for i, (group, start, seconds, outcome) in enumerate(
            zip(tasks["group"], tasks["start"], tasks["seconds"], tasks["outcome"], strict=True)
        )
        if outcome == "done"
    ]


def _list_phases(tasks: Mapping[str, list[Any]]) -> list[Bar]:
    """Return a bar for each phase of a task, one behind the other."""
    bars: list[Bar] = []
    for i, (start, phases, outcome) in enumerate(
        zip(tasks["start"], tasks["phases"], tasks["outcome"], strict=True)
    ):
        if outcome != "done":
            continue
        for phase, seconds in enumerate(phases):
            if seconds:
                bars.append((phase, i, start, seconds))
                start += seconds
    return bars


def _layer_bars(
    bars: Sequence[Bar], tasks: Mapping[str, list[Any]], colour: str, factor: float
) -> Layer:
    numbers = [i for _, i, _, _ in bars]
    lanes = [tasks["lane"][i] for i in numbers]
    data: dict[str, list[Any]] = {
        "left": [_round(start / factor) for _, _, start, _ in bars],
        "right": [_round((start + seconds) / factor) for _, _, start, seconds in bars],
        "top": [lane + 0.12 for lane in lanes],
        "bottom": [lane + 0.88 for lane in lanes],
        "task": [tasks["label"][i] for i in numbers],
        "step": [tasks["step"][i] for i in numbers],
        "took": [_say_time(tasks, i) for i in numbers],
        "peak": [
            format_bytes(peak) if (peak := tasks["peak_bytes"][i]) is not None else "not measured"
            for i in numbers
        ],
    }
    hover = [("", "task"), ("step", "step"), ("took", "took"), ("peak", "peak")]
    if colour == "bad":
        data["outcome"] = [f"{tasks['outcome'][i]} {tasks['error'][i]}".strip() for i in numbers]
        hover.append(("outcome", "outcome"))
    if colour == "bad":
        # Taller than the others: seen by those, too, who do not tell the colours apart.
        data["top"], data["bottom"] = list(lanes), [lane + 1 for lane in lanes]
        return Layer("quad", colour, data, width=1.5, hover=hover)
    return Layer("quad", colour, data, width=0.6, hover=hover)


def _layer_blocks(timeline: Timeline, factor: float) -> list[Layer]:
    blocks = timeline.blocks
    layers = []
    colours = _colours(timeline)
    # Short tasks are not taken apart into phases: their colour is that of computing.
    usual = PHASES.index("computing") if timeline.groups == PHASES else None
    for group in sorted(set(blocks["group"])):
        at = [i for i, of in enumerate(blocks["group"]) if of == group]
        data: dict[str, list[Any]] = {
            "left": [_round(blocks["start"][i] / factor) for i in at],
            "right": [_round((blocks["start"][i] + blocks["seconds"][i]) / factor) for i in at],
            "top": [blocks["lane"][i] + 0.12 for i in at],
            "bottom": [blocks["lane"][i] + 0.88 for i in at],
            "alpha": [round(0.1 + 0.45 * blocks["busy"][i], 3) for i in at],
            "tasks": [f"{blocks['tasks'][i]:,} short tasks" for i in at],
            "busy": [f"{blocks['busy'][i]:.0%} of this time" for i in at],
        }
        colour = colours[group if usual is None else usual]
        layers.append(
            Layer(
                "quad",
                colour,
                data,
                alpha="alpha",
                width=0,
                hover=[("", "tasks"), ("busy", "busy")],
            )
        )
    return layers


def _say_time(tasks: Mapping[str, list[Any]], number: int) -> str:
    text = format_seconds(tasks["seconds"][number])
    reading, _, writing = tasks["phases"][number]
    if reading and writing:
        text += f" (read {format_seconds(reading)}, write {format_seconds(writing)})"
    return text


def _draw_memory(memory: Memory, seconds: float) -> Figure | None:
    held = [size for series in memory.series for size in series.bytes]
    if not held:
        return None
    limits = sorted({series.limit_bytes for series in memory.series if series.limit_bytes})
    shown = [limit for limit in limits if limit <= FAR_ABOVE * max(held)]
    top = max([*held, *shown]) * 1.06
    factor, unit = _unit(top, _BYTES)
    moments = [moment for series in memory.series for moment in series.time]
    last = max([seconds, *moments])
    time_factor, time_unit = _unit(last, _SECONDS)
    layers, legend = [], []
    for number, series in enumerate(memory.series):
        colour = "muted" if memory.others and series is memory.series[-1] else _line(number)
        layers.append(
            _layer_series(series.time, series.bytes, series.label, colour, time_factor, factor)
        )
        legend.append(Legend(colour, shorten(series.label, 40), "line"))
    for limit in shown:
        ends = {"x": [0.0, last / time_factor], "y": [limit / factor] * 2}
        layers.append(Layer("line", "ink", ends, width=1.5, dash="dashed"))
    if shown:
        text = " and ".join(format_bytes(limit) for limit in shown)
        legend.append(Legend("ink", f"limit of a worker: {text}", "dashed"))
    for kind, (colour, marker, text) in _SIGNS.items():
        marks = [mark for mark in memory.marks if mark.kind == kind]
        if marks:
            data: dict[str, list[Any]] = {
                "x": [_round(mark.time / time_factor) for mark in marks],
                "y": [
                    _round((top * 0.97 if mark.bytes is None else mark.bytes) / factor)
                    for mark in marks
                ],
                "what": [mark.message for mark in marks],
                "when": [format_seconds(max(0.0, mark.time)) for mark in marks],
            }
            hover = [("", "what"), ("after", "when")]
            # A rim in the colour of the paper keeps a sign apart from the line it stands on.
            edge = None if marker == "x" else "paper"
            width = 2.5 if edge is None else 1.5
            look = Layer("scatter", colour, data, width=width, edge=edge, hover=hover)
            layers.append(replace(look, marker=marker, size=12))
            legend.append(Legend(colour, text, marker))
    caption = "What every process held. "
    caption += (
        "Look for lines that touch their limit, and for lines that only ever rise."
        if memory.is_sampled
        else "There are no samples over time: each point is what a process held after a task, "
        "so peaks within tasks are not seen."
    )
    if limits and not shown:
        text = " and ".join(format_bytes(limit) for limit in limits)
        caption += f" The limit of {text} for a worker lies far above the figure."
    return Figure(
        "memory",
        "Memory of every process over time",
        caption,
        height=300,
        x=Axis(f"time since the run began ({time_unit})", 0, last / time_factor or 1),
        y=Axis(f"memory ({unit})", 0, top / factor),
        layers=layers,
        legend=legend,
    )


def _layer_series(
    time: list[float], held: list[float], label: str, colour: str, time_factor: float, factor: float
) -> Layer:
    data: dict[str, list[Any]] = {
        "x": [_round(moment / time_factor) for moment in time],
        "y": [_round(size / factor) for size in held],
        "process": [label] * len(time),
        "held": [format_bytes(size) for size in held],
    }
    hover = [("", "process"), ("held", "held")]
    # A line of one point is not there.
    glyph = "line" if len(time) > 1 else "scatter"
    return Layer(glyph, colour, data, width=1.8, hover=hover)


def _draw_prediction(prediction: Prediction | None) -> list[Figure | None]:
    if prediction is None:
        return []
    at_once = prediction.tasks_at_once
    peak = "Peak memory of each task: predicted and measured. "
    if at_once > 1:
        peak = f"Peak memory of {at_once} tasks at once in a process: predicted and measured. "
    return [
        _draw_pairs(
            "seconds",
            "Time of each task, predicted and measured",
            "Time of each task: predicted and measured. On the line the plan was right; "
            "points above it took longer than expected.",
            prediction.seconds,
            _SECONDS,
            format_seconds,
        ),
        _draw_pairs(
            "peaks",
            "Peak memory of each task, predicted and measured",
            f"{peak}Points far above the line needed more than was planned for.",
            prediction.peak_bytes,
            _BYTES,
            format_bytes,
        ),
    ]


def _draw_pairs(
    name: str, title: str, caption: str, pairs: Pairs | None, units: Any, show: Any
) -> Figure | None:
    if pairs is None:
        return None
    top = max([*pairs.predicted, *pairs.measured]) * 1.08
    factor, unit = _unit(top, units)
    if len(pairs.measured) < pairs.total:
        caption += f" {len(pairs.measured):,} of {format_count(pairs.total, 'task')} are shown."
    data: dict[str, list[Any]] = {
        "x": [_round(value / factor) for value in pairs.predicted],
        "y": [_round(value / factor) for value in pairs.measured],
        "task": pairs.label,
        "predicted": [show(value) for value in pairs.predicted],
        "measured": [show(value) for value in pairs.measured],
    }
    hover = [("", "task"), ("predicted", "predicted"), ("measured", "measured")]
    start, end = 0.0, top / factor
    least = min(value for value in (*data["x"], *data["y"], end) if value > 0)
    scale: dict[str, Any] = {}
    if end > WIDE * least:
        # A few that took a hundred times longer would press all others into a corner.
        start = least / 1.3
        scale = {"scale": "log", "ticks": _list_decades(start, end)}
        data = {name: [data[name][i] for i in _above(data, 0)] for name in data}
    return Figure(
        name,
        title,
        caption,
        height=300,
        x=Axis(f"predicted ({unit})", start, end, **scale),
        y=Axis(f"measured ({unit})", start, end, **scale),
        layers=[
            Layer(
                "line", "muted", {"x": [start, end], "y": [start, end]}, width=1.2, dash="dashed"
            ),
            Layer("scatter", "c0", data, alpha=0.55, size=7, width=0, hover=hover),
        ],
        legend=[
            Legend("muted", "predicted = measured", "dashed"),
            Legend("c0", "one task", "circle"),
        ],
    )


def _above(data: Mapping[str, list[Any]], least: float) -> list[int]:
    """Return which points can stand on an axis that has no zero."""
    pairs = zip(data["x"], data["y"], strict=True)
    return [i for i, (x, y) in enumerate(pairs) if x > least and y > least]


def _list_decades(start: float, end: float) -> list[tuple[float, str]]:
    """Return the labels of a logarithmic axis.

    Examples
    --------
    >>> _list_decades(3.0, 450.0)
    [(5.0, '5'), (10.0, '10'), (20.0, '20'), (50.0, '50'), (100.0, '100'), (200.0, '200')]
    >>> [label for _, label in _list_decades(0.03, 4000)]
    ['0.1', '1', '10', '100', '1000']
    """
    first, last = floor(log10(start)), ceil(log10(end))
    within = (1, 2, 5) if last - first <= 3 else (1,)
    found = [factor * 10.0**power for power in range(first, last + 1) for factor in within]
    return [(value, f"{value:.12g}") for value in found if start <= value <= end]


def _unit(largest: float, units: Sequence[tuple[float, float, str]]) -> tuple[float, str]:
    """Return the unit in which numbers up to the largest are easy to read.

    Examples
    --------
    >>> _unit(300.0, _SECONDS), _unit(3e9, _BYTES)
    ((60, 'min'), (1073741824, 'GiB'))
    """
    for least, factor, unit in units:
        if largest >= least:
            return factor, unit
    return 1, "bytes"


def _colours(timeline: Timeline) -> list[str]:
    """Return a colour for each group; computing has the same as the first step elsewhere."""
    if timeline.groups == PHASES:
        return ["c1", "c0", "c2"]
    colours = [_line(number) for number in range(len(timeline.groups))]
    return [*colours[:-1], "muted"] if timeline.has_others else colours


def _line(number: int) -> str:
    return f"c{number % COLOURS}"


def _round(value: float) -> float:
    return float(f"{value:.6g}")
