"""How much every process held, with limits, pauses, spills and deaths."""

from dataclasses import replace
from typing import Any

from barrow.reporting.content import Memory
from barrow.reporting.figure import (
    BYTES,
    SECONDS,
    Axis,
    Figure,
    Layer,
    Legend,
    choose_unit,
    name_line,
    round_off,
)
from barrow.reporting.words import shorten
from barrow.units import format_bytes, format_seconds

# A limit so far above all that was held would press the lines to the ground.
FAR_ABOVE = 3.0
_SIGNS = {
    "death": ("bad", "x", "worker died or was lost"),
    "pause": ("ink", "square", "worker paused"),
    "spill": ("ink", "triangle", "results moved to disk"),
    "other": ("muted", "diamond", "other event"),
}


def draw_memory_figure(memory: Memory, seconds: float) -> Figure | None:
    held = [size for series in memory.series for size in series.bytes]
    if not held:
        return None
    limits = sorted({series.limit_bytes for series in memory.series if series.limit_bytes})
    shown = [limit for limit in limits if limit <= FAR_ABOVE * max(held)]
    top = max([*held, *shown]) * 1.06
    factor, unit = choose_unit(top, BYTES)
    moments = [moment for series in memory.series for moment in series.time]
    last = max([seconds, *moments])
    time_factor, time_unit = choose_unit(last, SECONDS)
    layers, legend = [], []
    for number, series in enumerate(memory.series):
        colour = "muted" if memory.others and series is memory.series[-1] else name_line(number)
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
                "x": [round_off(mark.time / time_factor) for mark in marks],
                "y": [
                    round_off((top * 0.97 if mark.bytes is None else mark.bytes) / factor)
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
        "x": [round_off(moment / time_factor) for moment in time],
        "y": [round_off(size / factor) for size in held],
        "process": [label] * len(time),
        "held": [format_bytes(size) for size in held],
    }
    hover = [("", "process"), ("held", "held")]
    # A line of one point is not there.
    glyph = "line" if len(time) > 1 else "scatter"
    return Layer(glyph, colour, data, width=1.8, hover=hover)
