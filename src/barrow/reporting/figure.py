"""What a figure is made of: axes, layers of signs, a legend and a caption, as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10
from typing import Any

COLOURS = 6
"""Colours of ``page.css`` that tell things apart: named c0, c1, ..."""
SECONDS = ((7200, 3600, "h"), (120, 60, "min"), (1, 1, "s"), (1e-3, 1e-3, "ms"), (0, 1e-6, "µs"))
BYTES = tuple((1024**n, 1024**n, u) for n, u in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")))


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


def choose_unit(largest: float, units: Sequence[tuple[float, float, str]]) -> tuple[float, str]:
    """Return the unit in which numbers up to the largest are easy to read.

    Examples
    --------
    >>> choose_unit(300.0, SECONDS), choose_unit(3e9, BYTES)
    ((60, 'min'), (1073741824, 'GiB'))
    """
    for least, factor, unit in units:
        if largest >= least:
            return factor, unit
    return 1, "bytes"


def name_line(number: int) -> str:
    return f"c{number % COLOURS}"


def round_off(value: float) -> float:
    return float(f"{value:.6g}")


def list_decades(start: float, end: float) -> list[tuple[float, str]]:
    """Return the labels of a logarithmic axis.

    Examples
    --------
    >>> list_decades(3.0, 450.0)
    [(5.0, '5'), (10.0, '10'), (20.0, '20'), (50.0, '50'), (100.0, '100'), (200.0, '200')]
    >>> [label for _, label in list_decades(0.03, 4000)]
    ['0.1', '1', '10', '100', '1000']
    """
    first, last = floor(log10(start)), ceil(log10(end))
    within = (1, 2, 5) if last - first <= 3 else (1,)
    found = [factor * 10.0**power for power in range(first, last + 1) for factor in within]
    return [(value, f"{value:.12g}") for value in found if start <= value <= end]
