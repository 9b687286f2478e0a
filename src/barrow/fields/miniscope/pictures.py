"""Pictures of results: contours, traces, the motion."""

from pathlib import Path
from typing import Any

import numpy as np

from barrow.fields.miniscope.results import Result

_SHOWN = 20
_LIGHT = "#d95f02"
_DARK = "#1b9e77"


def plot_contours(result: Result, axes: Any = None) -> Any:
    """Draw the outline of each cell, with its number, on the maximum projection."""
    from matplotlib.patheffects import withStroke

    axes = axes or _figure(6, 6)
    edge = [withStroke(linewidth=1.5, foreground="black")]  # bright cells and dark ones alike
    image = np.asarray(result.max_proj, float)
    axes.imshow(image, cmap="gray", vmin=0, vmax=np.percentile(image, 99.8) or 1)
    for number in range(result.units):
        footprint = np.asarray(result.A[number])
        axes.contour(footprint, levels=[0.3 * footprint.max()], colors=[_LIGHT], linewidths=0.9)
        row, col = np.unravel_index(int(footprint.argmax()), footprint.shape)
        label = axes.text(col, row, number, color="white", fontsize=6, ha="center", va="center")
        label.set_path_effects(edge)
    axes.set_title(f"{result.units} cells on the maximum projection", fontsize=10)
    axes.set_xlabel("width, pixels")
    axes.set_ylabel("height, pixels")
    return axes


def plot_traces(result: Result, axes: Any = None, units: Any = None) -> Any:
    """Draw the traces of cells above each other: as measured, and without noise."""
    chosen = list(range(min(_SHOWN, result.units))) if units is None else list(units)
    axes = axes or _figure(8, 1.5 + 0.35 * max(1, len(chosen)))
    for place, unit in enumerate(chosen):
        raw = np.asarray(result.YrA[unit]) - float(result.b0[unit])
        calcium = np.asarray(result.C[unit])
        scale = max(float(calcium.max()), float(np.abs(raw).max()), 1e-9)
        axes.plot(raw / scale + len(chosen) - place, color="0.7", linewidth=0.6)
        axes.plot(calcium / scale + len(chosen) - place, color=_DARK, linewidth=0.9)
    axes.set_yticks([len(chosen) - place for place in range(len(chosen))])
    axes.set_yticklabels([str(unit) for unit in chosen], fontsize=7)
    axes.set_xlabel("frame")
    axes.set_ylabel("cell")
    axes.set_title("Traces: measured (grey), without noise (green)", fontsize=10)
    return axes


def plot_motion(result: Result, axes: Any = None) -> Any:
    """Draw how far each frame was moved."""
    axes = axes or _figure(8, 2.6)
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


def _figure(width: float, height: float) -> Any:
    # Not pyplot: it would keep every figure, and may want a screen.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots()
