"""Pictures of results: contours, traces, the motion."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from barrow.fields.miniscope.results import Result

_SHOWN = 20
_LIGHT = "#d95f02"
_DARK = "#1b9e77"


def plot_contours(result: Result, axes: Any = None) -> Any:
    """Draw the outline of each cell, with its number, on the maximum projection."""
    axes = axes or _axes(6, 6)
    footprints = (np.asarray(result.A[unit]) for unit in range(result.units))
    draw_outlines(axes, np.asarray(result.max_proj, float), footprints)
    axes.set_title(f"{result.units} cells on the maximum projection", fontsize=10)
    return axes


def plot_traces(result: Result, axes: Any = None, units: Any = None) -> Any:
    """Draw the traces of cells above each other: as measured, and without noise."""
    chosen = list(range(min(_SHOWN, result.units))) if units is None else list(units)
    axes = axes or _axes(8, 1.5 + 0.35 * max(1, len(chosen)))
    draw_traces(axes, result.YrA, np.asarray(result.b0), result.C, chosen)
    axes.set_title("Traces: measured (grey), without noise (green)", fontsize=10)
    return axes


def plot_motion(result: Result, axes: Any = None) -> Any:
    """Draw how far each frame was moved."""
    axes = axes or _axes(8, 2.6)
    for name, values, colour in zip(
        ("height", "width"), np.asarray(result.motion).T, (_LIGHT, _DARK), strict=True
    ):
        axes.plot(values, label=name, color=colour, linewidth=0.8)
    axes.set_xlabel("frame")
    axes.set_ylabel("shift, pixels")
    axes.legend(fontsize=8, loc="upper right")
    axes.set_title("Motion", fontsize=10)
    return axes


def draw_all(result: Result) -> list[Path]:
    """Write all pictures into the folder of the results, and return where they are."""
    made = []
    for draw in (plot_contours, plot_traces, plot_motion):
        figure = draw(result).figure
        place = result.folder / f"{draw.__name__.removeprefix('plot_')}.png"
        figure.savefig(place, dpi=120)
        made.append(place)
    return made


def draw_outlines(axes: Any, image: np.ndarray, footprints: Iterable[np.ndarray]) -> None:
    """Draw footprints with their numbers on an image."""
    from matplotlib.patheffects import withStroke

    edge = [withStroke(linewidth=2, foreground="black")]  # on bright cells and dark ones alike
    _draw_image(axes, image)
    for number, footprint in enumerate(footprints):
        least = 0.3 * footprint.max()
        axes.contour(footprint, levels=[least], colors=[_LIGHT], linewidths=0.9)
        rows, cols = np.nonzero(footprint >= least)
        # At the upper right corner: inside it would hide what the outline is about.
        corner = {"xy": (cols.max(), rows.min()), "xytext": (1, 1), "textcoords": "offset points"}
        label = axes.annotate(str(number), **corner, color="white", fontsize=8)
        label.set_path_effects(edge)


def draw_seeds(axes: Any, image: np.ndarray, seeds: np.ndarray) -> None:
    """Draw seeds on an image."""
    _draw_image(axes, image)
    axes.scatter(seeds[:, 1], seeds[:, 0], s=14, facecolors="none", edgecolors=_LIGHT)


def draw_traces(
    axes: Any, YrA: Any, b0: np.ndarray, C: Any, units: Sequence[int], S: Any = None
) -> None:
    """Draw traces above each other, each scaled to its largest value; activity as ticks below."""
    for place, unit in enumerate(units):
        raw = np.asarray(YrA[unit]) - float(b0[unit])
        calcium, floor = np.asarray(C[unit]), len(units) - place
        scale = max(float(calcium.max()), float(np.abs(raw).max()), 1e-9)
        axes.plot(raw / scale + floor, color="0.7", linewidth=0.6)
        axes.plot(calcium / scale + floor, color=_DARK, linewidth=0.9)
        if S is not None:
            active = np.flatnonzero(np.asarray(S[unit]) > 0)
            axes.vlines(active, floor - 0.22, floor - 0.06, color=_LIGHT, linewidth=0.5)
    axes.set_yticks([len(units) - place for place in range(len(units))])
    axes.set_yticklabels([str(unit) for unit in units], fontsize=7)
    axes.set_xlabel("frame")
    axes.set_ylabel("cell")


def make_figure(columns: int, side: float) -> tuple[Any, Any]:
    """Return a figure, and its axes beside each other."""
    # Not pyplot: it would keep every figure, and may want a screen.
    from matplotlib.figure import Figure

    # Higher than wide: titles and the names of axes lie above and below a square image.
    figure = Figure(figsize=(columns * side, side + 0.6), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def _axes(width: float, height: float) -> Any:
    figure, (axes,) = make_figure(1, 1)
    figure.set_size_inches(width, height)
    return axes


def _draw_image(axes: Any, image: np.ndarray) -> None:
    axes.imshow(image, cmap="gray", vmin=0, vmax=np.percentile(image, 99.8) or 1)
    axes.set_xlabel("width, pixels")
    axes.set_ylabel("height, pixels")
