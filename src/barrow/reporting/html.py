"""A report as one HTML file that needs nothing else: no network, no fonts, no server."""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import barrow
from barrow.reporting.content import Content
from barrow.reporting.figure import Figure, Legend
from barrow.reporting.figures import draw_figures
from barrow.reporting.words import shorten
from barrow.units import format_bytes, format_seconds

HERE = Path(__file__).parent
STATUS = {
    "done": "done",
    "failed": "failed",
    "interrupted": "interrupted",
    "killed": "killed before its end",
    "running": "still running",
    "unknown": "no end: killed, or still running",
}
_SHOW: dict[str, Callable[[float], str]] = {"seconds": format_seconds, "bytes": format_bytes}
_SHAPES = {
    "square": '<rect width="12" height="12" rx="2"/>',
    "circle": '<circle cx="6" cy="6" r="5"/>',
    "triangle": '<path d="M6 0 12 11H0z"/>',
    "diamond": '<path d="M6 0 12 6 6 12 0 6z"/>',
    "x": '<path d="M2 2 11 11M11 2 2 11" stroke-width="3"/>',
    "line": '<path d="M0 6h14" stroke-width="3"/>',
    "dashed": '<path d="M0 6h14" stroke-width="2" stroke-dasharray="4 2"/>',
}


@dataclass(frozen=True)
class Live:
    """How the page of a run that goes on keeps up with it."""

    refresh_seconds: float
    """How often it asks for its new part."""
    has_scripts: bool = True
    """False for the part that changes: what draws it is on the reader's side already."""


def format_html(content: Content, live: Live | None = None) -> str:
    """Return the page of a report, or of a run that goes on.

    All texts are escaped by the template. Should one slip through all the same, the page
    lets no script run but those that are named in it by their checksum.
    """
    figures = draw_figures(content)
    scripts = list_scripts() if live is None or live.has_scripts else []
    if live is not None and live.has_scripts:
        scripts.append((HERE / "live.js").read_text())
    return render(
        "page.html",
        figures,
        scripts,
        content=content,
        status=STATUS[content.status],
        began=time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(content.began)),
        now=time.strftime("%H:%M:%S"),
        live=live,
    )


def render(
    template: str, figures: Mapping[str, Figure], scripts: Sequence[str], **values: Any
) -> str:
    """Return a page from a template of this folder, with its figures and what draws them."""
    from markupsafe import Markup

    page: str = (
        _templates()
        .get_template(template)
        .render(
            figures=figures,
            version=barrow.__version__,
            policy=Markup(" ".join(f"'sha256-{_digest(script)}'" for script in scripts)),
            css=Markup(read_css()),
            data=Markup(_embed(figures)),
            scripts=[Markup(script) for script in scripts],
            **values,
        )
    )
    return page


def list_scripts() -> list[str]:
    """Return what draws figures in the reader's browser."""
    names = ("bokeh.min.js", "bokeh-api.min.js")
    return [*map(_read_bokeh, names), (HERE / "draw.js").read_text()]


def read_css() -> str:
    """Return how pages look: on a light and on a dark screen, on a telephone, on paper."""
    return (HERE / "page.css").read_text()


@cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(autoescape=True, trim_blocks=True, loader=FileSystemLoader(HERE))
    environment.filters["short"] = lambda text, most=120: shorten(str(text), most)
    environment.filters["format_as"] = _format_as
    environment.filters["sign"] = _sign
    return environment


def _format_as(value: float, kind: str) -> str:
    # What is a little before the beginning comes from clocks that differ.
    return _SHOW[kind](value) if value > 0 else {"seconds": "0 s", "bytes": "0 B"}[kind]


def _sign(entry: Legend) -> Any:
    from markupsafe import Markup

    colour = f"var(--{entry.colour})"
    return Markup(
        f'<svg viewBox="0 0 14 12" fill="{colour}" stroke="{colour}" stroke-width="0" '
        f'aria-hidden="true">{_SHAPES[entry.sign]}</svg>'
    )


def _embed(figures: Mapping[str, Figure]) -> str:
    """Return data that can stand in a script element: nothing in it can close the element."""
    text = json.dumps([asdict(figure) for figure in figures.values()], separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


@cache
def _read_bokeh(name: str) -> str:
    """Return a part of BokehJS; the Python side of Bokeh is not imported."""
    spec = find_spec("bokeh")
    assert spec is not None
    assert spec.origin is not None
    text = (Path(spec.origin).parent / "server" / "static" / "js" / name).read_text()
    # A comment that asks for a map of the source would be a request.
    return text.partition("\n//# sourceMappingURL=")[0] + "\n"


@cache
def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
