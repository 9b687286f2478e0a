"""The figures of a page as a picture, for a paper or a slide; needs matplotlib."""

import io
import re
from collections.abc import Sequence
from typing import Any

from barrow.errors import InputError
from barrow.reporting.figure import Axis, Figure, Layer
from barrow.reporting.html import read_css

INCHES = (7.0, 4.2)
"""Of one figure."""
_MARKERS = {"circle": "o", "diamond": "D", "square": "s", "triangle": "^", "x": "x"}
_DASHES = {"solid": "-", "dashed": "--"}


def draw_png(figures: Sequence[Figure], dpi: int = 150) -> bytes:
    """Return figures side by side as a PNG."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise InputError(
            "A picture needs matplotlib, which is not installed: pip install matplotlib, or "
            "save a page: a name that ends with .html."
        ) from None
    # No pyplot: nothing of the user's own figures is touched.
    canvas = Canvas(figsize=(INCHES[0] * len(figures), INCHES[1]), layout="constrained")
    FigureCanvasAgg(canvas)
    places = canvas.subplots(1, len(figures), squeeze=False)[0]
    for place, figure in zip(places, figures, strict=True):
        _draw(place, figure)
    file = io.BytesIO()
    canvas.savefig(file, format="png", dpi=dpi)
    return file.getvalue()


def read_colours() -> dict[str, str]:
    """Return the colours of a light page by their names.

    Examples
    --------
    >>> read_colours()["c0"]
    '#0072b2'
    """
    light = read_css().partition("@media")[0]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))


def _draw(place: Any, figure: Figure) -> None:
    colours = read_colours()
    for layer in figure.layers:
        _draw_layer(place, layer, colours)
    for entry in figure.legend:
        look = {"linestyle": "--" if entry.sign == "dashed" else "-"}
        if entry.sign in _MARKERS:
            look = {"linestyle": "", "marker": _MARKERS[entry.sign]}
        place.plot([], [], color=colours[entry.colour], label=entry.text, **look)
    place.legend(frameon=False, fontsize="small")
    place.set_title(figure.title, loc="left", fontsize="medium")
    _set_axis(place.xaxis, place.set_xscale, place.set_xlim, figure.x)
    _set_axis(place.yaxis, place.set_yscale, place.set_ylim, figure.y)
    place.spines[["top", "right"]].set_visible(False)
    place.grid(axis="y", color=colours["grid"])
    place.set_axisbelow(True)


def _draw_layer(place: Any, layer: Layer, colours: dict[str, str]) -> None:
    look: dict[str, Any] = {"color": colours[layer.colour]}
    if isinstance(layer.alpha, float):
        look["alpha"] = layer.alpha
    if layer.glyph == "line":
        dash = _DASHES[layer.dash]
        place.plot(layer.data["x"], layer.data["y"], dash, linewidth=layer.width, **look)
    elif layer.glyph == "scatter":
        marker = _MARKERS[layer.marker]
        place.scatter(layer.data["x"], layer.data["y"], layer.size**2, marker=marker, **look)
    else:
        raise ValueError(f"A layer of {layer.glyph} cannot be drawn as a picture.")


def _set_axis(axis: Any, set_scale: Any, set_limits: Any, spec: Axis) -> None:
    set_scale(spec.scale)
    set_limits(spec.start, spec.end)
    axis.set_label_text(spec.label)
    if spec.ticks is not None:
        axis.set_ticks([at for at, _ in spec.ticks], [text for _, text in spec.ticks])
        axis.set_ticks([], minor=True)
