"""Predicted and measured, a point for each task."""

from collections.abc import Mapping
from typing import Any

from barrow.reporting.content import Pairs, Prediction
from barrow.reporting.figure import (
    BYTES,
    SECONDS,
    Axis,
    Figure,
    Layer,
    Legend,
    choose_unit,
    list_decades,
    round_off,
)
from barrow.units import format_bytes, format_count, format_seconds

# Where the largest is so many times the least, an axis is logarithmic.
WIDE = 50.0


def draw_prediction_figures(prediction: Prediction | None) -> list[Figure | None]:
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
            SECONDS,
            format_seconds,
        ),
        _draw_pairs(
            "peaks",
            "Peak memory of each task, predicted and measured",
            f"{peak}Points far above the line needed more than was planned for.",
            prediction.peak_bytes,
            BYTES,
            format_bytes,
        ),
    ]


def _draw_pairs(
    name: str, title: str, caption: str, pairs: Pairs | None, units: Any, show: Any
) -> Figure | None:
    if pairs is None:
        return None
    top = max([*pairs.predicted, *pairs.measured]) * 1.08
    factor, unit = choose_unit(top, units)
    if len(pairs.measured) < pairs.total:
        caption += f" {len(pairs.measured):,} of {format_count(pairs.total, 'task')} are shown."
    data: dict[str, list[Any]] = {
        "x": [round_off(value / factor) for value in pairs.predicted],
        "y": [round_off(value / factor) for value in pairs.measured],
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
        scale = {"scale": "log", "ticks": list_decades(start, end)}
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
