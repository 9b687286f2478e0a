"""The timeline: which worker did what, and when."""

from collections.abc import Mapping, Sequence
from typing import Any

from barrow.reporting.content import Timeline
from barrow.reporting.figure import (
    SECONDS,
    Axis,
    Figure,
    Layer,
    Legend,
    choose_unit,
    name_line,
    round_off,
)
from barrow.reporting.tasks import PHASES
from barrow.reporting.words import shorten
from barrow.units import format_bytes, format_seconds

MOST_LABELS = 40
LABEL_LENGTH = 22


def draw_timeline_figure(timeline: Timeline, seconds: float) -> Figure | None:
    if not timeline.total:
        return None
    tasks = timeline.tasks
    ends = [a + b for a, b in zip(tasks["start"], tasks["seconds"], strict=True)]
    factor, unit = choose_unit(max([seconds, *ends]), SECONDS)
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
        "left": [round_off(start / factor) for _, _, start, _ in bars],
        "right": [round_off((start + seconds) / factor) for _, _, start, seconds in bars],
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
            "left": [round_off(blocks["start"][i] / factor) for i in at],
            "right": [round_off((blocks["start"][i] + blocks["seconds"][i]) / factor) for i in at],
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


def _colours(timeline: Timeline) -> list[str]:
    """Return a colour for each group; computing has the same as the first step elsewhere."""
    if timeline.groups == PHASES:
        return ["c1", "c0", "c2"]
    colours = [name_line(number) for number in range(len(timeline.groups))]
    return [*colours[:-1], "muted"] if timeline.has_others else colours
