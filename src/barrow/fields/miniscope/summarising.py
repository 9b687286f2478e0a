"""One offline page about a result: its numbers, its pictures, its parameters."""

import base64
import io
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from barrow.fields.miniscope.pictures import plot_contours, plot_motion, plot_traces
from barrow.fields.miniscope.results import Result
from barrow.reporting.html import read_css
from barrow.reporting.writing import write_text

_PICTURES = {
    "Cells": (plot_contours, "Outlines at 0.3 of each footprint's peak."),
    "Traces": (plot_traces, "Each scaled to its own largest value."),
    "Motion": (plot_motion, "How far each frame was moved to put it in place."),
}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>{css}
figure img {{ max-width: 100%; height: auto; background: white; border-radius: 10px; }}</style>
</head>
<body><main>
<header><h1>{title}</h1><p class="headline">{headline}</p>
<dl class="tiles">{tiles}</dl></header>
{pictures}
<h2>Parameters</h2>
<table class="rows"><tbody>{params}</tbody></table>
</main></body></html>
"""


def write_summary(result: Result) -> Path:
    """Write ``summary.html`` into the folder of a result, and return its path.

    Everything is in the one file: it can be sent to somebody, and read without a network.
    """
    frames = int(result.C.sizes["frame"])
    height, width = result.max_proj.shape
    motion = np.asarray(result.motion)
    facts = {
        "cells": result.units,
        "frames": frames,
        "pixels": f"{height} × {width}",
        "largest shift": f"{np.abs(motion).max(initial=0):.1f} px",
        "active frames of a cell": f"{_share_active(result):.1%}",
    }
    page = _PAGE.format(
        css=read_css(),
        title=f"Cells of {escape(result.folder.name)}",
        headline=escape(f"{result.units} cells in {frames} frames of {height} × {width} pixels."),
        tiles="".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in facts.items()),
        pictures="".join(_figure(result, title) for title in _PICTURES),
        params="".join(_row(step, given) for step, given in result.params.items()),
    )
    return write_text(page, result.folder / "summary.html")


def _share_active(result: Result) -> float:
    """Return in what part of the frames a cell is active, on average."""
    return float((np.asarray(result.S) > 0).mean()) if result.units else 0.0


def _figure(result: Result, title: str) -> str:
    draw, caption = _PICTURES[title]
    picture = io.BytesIO()
    draw(result).figure.savefig(picture, format="png", dpi=110)
    data = base64.b64encode(picture.getvalue()).decode()
    return (
        f'<h2>{title}</h2><figure><img alt="{title}" src="data:image/png;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _row(step: str, given: dict[str, Any]) -> str:
    text = ", ".join(f"{name} = {value}" for name, value in given.items())
    return f'<tr><th scope="row">{escape(step)}</th><td>{escape(text)}</td></tr>'
