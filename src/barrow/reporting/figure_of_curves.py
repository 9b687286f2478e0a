"""Curves over something that was chosen: workers, the size of a chunk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from barrow.reporting.figure import (
    Axis,
    Figure,
    Layer,
    Legend,
    choose_unit,
    list_decades,
    round_off,
)

# Where the largest is so many times the least, an axis is logarithmic.
WIDE = 30.0


@dataclass(frozen=True)
class Line:
    """One curve of a figure."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str = "c0"
    low: Sequence[float] = ()
    """With ``high``: between which values each point may lie."""
    high: Sequence[float] = ()
    dash: str = "solid"
    marker: str = "circle"
    """Of its points; empty for a line alone."""
    says: Sequence[str] = ()
    """What appears over each point, instead of its value."""


@dataclass(frozen=True)
class Sheet:
    """What belongs to a figure of curves beside the curves."""

    name: str
    title: str
    caption: str
    x_label: str
    y_label: str
    units: Sequence[tuple[float, float, str]]
    """Of the values, as :func:`~barrow.reporting.figure.choose_unit` takes them."""
    show: Callable[[float], str]
    """How a value is told."""
    ticks: Sequence[tuple[float, str]] = ()
    """Of the axis from left to right; without them it is in seconds, and begins with 0."""
    height: int = 320


def draw_curves(sheet: Sheet, lines: Sequence[Line]) -> Figure:
    """Return a figure of some curves; axes are logarithmic where values differ much.

    Examples
    --------
    >>> from barrow.reporting.figure import SECONDS
    >>> from barrow.units import format_seconds
    >>> sheet = Sheet("time", "Time", "", "workers", "time", SECONDS, format_seconds,
    ...     ticks=[(1, "1"), (2, "2")])
    >>> figure = draw_curves(sheet, [Line("measured", [1, 2], [8.0, 4.2])])
    >>> figure.y.label, figure.layers[0].data["y"], figure.x.scale
    ('time (s)', [8.0, 4.2], 'log')
    """
    values = [value for line in lines for value in (*line.y, *line.low, *line.high) if value > 0]
    top, least = max(values, default=1.0), min(values, default=1.0)
    is_wide = top > WIDE * least
    factor, unit = choose_unit((top * least) ** 0.5 if is_wide else top, sheet.units)
    y = Axis(f"{sheet.y_label} ({unit})", 0, 1.08 * top / factor)
    if is_wide:
        start, end = least / factor / 1.3, 1.3 * top / factor
        y = Axis(y.label, start, end, list_decades(start, end), "log")
    layers: list[Layer] = []
    for line in lines:
        layers += _draw_line(line, factor, sheet.show)
    legend = [Legend(line.colour, line.label, _sign_of(line)) for line in lines]
    return Figure(
        sheet.name,
        sheet.title,
        sheet.caption,
        sheet.height,
        _x_axis(sheet, lines),
        y,
        layers,
        legend,
    )


def _x_axis(sheet: Sheet, lines: Sequence[Line]) -> Axis:
    places = [x for line in lines for x in line.x]
    if not sheet.ticks:
        return Axis(sheet.x_label, 0, max(places, default=1.0) or 1.0)
    ends = min(places) / 1.15, max(places) * 1.15
    return Axis(sheet.x_label, *ends, list(sheet.ticks), "log")


def _sign_of(line: Line) -> str:
    if line.dash != "solid":
        return "dashed"
    return line.marker if line.marker and len(line.x) == 1 else "line"


def _draw_line(line: Line, factor: float, show: Callable[[float], str]) -> list[Layer]:
    x = [round_off(value) for value in line.x]
    y = [round_off(value / factor) for value in line.y]
    data: dict[str, list[Any]] = {
        "x": x,
        "y": y,
        "of": [line.label] * len(x),
        "is": list(line.says) or [show(value) for value in line.y],
    }
    hover = [("", "of"), ("", "is")]
    layers = [Layer("line", line.colour, data, width=1.8, dash=line.dash)] if len(x) > 1 else []
    for place, low, high in zip(x if line.low else (), line.low, line.high, strict=True):
        ends = {"x": [place] * 2, "y": [round_off(low / factor), round_off(high / factor)]}
        layers.append(Layer("line", line.colour, ends, width=1.2))
    if line.marker:
        size = 8.0 if len(x) > 1 else 13.0
        layers.append(
            Layer(
                "scatter",
                line.colour,
                data,
                width=1.5,
                edge="paper",
                marker=line.marker,
                size=size,
                hover=hover,
            )
        )
    return layers
