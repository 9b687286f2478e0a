"""What a user may type for ``plan`` and ``map``, turned into arguments of the API.

Text in, values out; data and functions are loaded in :mod:`barrow.cli.loading`.
"""

import json
from collections.abc import Callable
from typing import Any

import click

from barrow.units import parse_bytes

BORDERS = ("reflect", "mirror", "nearest", "none")


def work_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments that ``plan`` and ``map`` share."""
    for add in reversed(_SHARED):
        command = add(command)
    return command


class Size(click.ParamType):
    """A number of bytes, as in 4GB."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number."""
        try:
            return parse_bytes(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Numbers(click.ParamType):
    """Whole numbers from 1 on, as in 1,2,4."""

    name = "n,n,…"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[int]:
        """Return the numbers."""
        parts = str(value).split(",")
        if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is no list of numbers. Write for example 1,2,4.", param, ctx)
        return [int(part) for part in parts]


class Length(click.ParamType):
    """A dimension and a length, as in y=512."""

    name = "dim=n"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, int]:
        """Return both."""
        dim, _, length = str(value).rpartition("=")
        if not dim or not length.isdecimal():
            self.fail(f"{value!r} is no length. Write for example y=512.", param, ctx)
        return dim, int(length)


class _Dim(click.ParamType):
    """A dimension by its name, or an axis by its number."""

    name = "dim"

    def convert(self, value: Any, param: Any, ctx: Any) -> str | int:  # noqa: ARG002
        return parse_dim(value)


class _Halo(click.ParamType):
    name = "dim=n"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str | int, Any]:
        try:
            return parse_halo(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Resource(click.ParamType):
    name = "name=n"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, float]:
        try:
            return parse_resource(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Border(click.ParamType):
    name = "border"

    def convert(self, value: Any, param: Any, ctx: Any) -> str | float | None:
        try:
            return parse_border(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Kwargs(click.ParamType):
    name = "json"

    def convert(self, value: Any, param: Any, ctx: Any) -> dict[str, Any]:
        try:
            found = json.loads(value)
        except ValueError as error:
            self.fail(f"{value!r} is not JSON: {error}.", param, ctx)
        if not isinstance(found, dict):
            self.fail(f"""{value!r} names no arguments. Write '{{"sigma": 2}}'.""", param, ctx)
        return found


def parse_dim(text: str) -> str | int:
    """Return a dimension's name, or an axis number.

    Examples
    --------
    >>> parse_dim("time"), parse_dim("-1")
    ('time', -1)
    """
    return int(text) if text.removeprefix("-").isdecimal() else text


def parse_halo(text: str) -> tuple[str | int, int | tuple[int, int]]:
    """Return a dimension and its halo: one width, or one before and one after.

    Examples
    --------
    >>> parse_halo("y=16"), parse_halo("0=1,0")
    (('y', 16), (0, (1, 0)))
    """
    dim, _, widths = text.rpartition("=")
    try:
        found = [int(width) for width in widths.split(",")]
    except ValueError:
        found = []
    if not dim or len(found) not in (1, 2):
        raise ValueError(f"{text!r} is not a halo. Write y=16, or y=16,0 for before and after.")
    return parse_dim(dim), found[0] if len(found) == 1 else (found[0], found[1])


def parse_resource(text: str) -> tuple[str, float]:
    """Return the name of a resource and how much of it a task needs.

    Examples
    --------
    >>> parse_resource("GPU"), parse_resource("licence=0.5")
    (('GPU', 1.0), ('licence', 0.5))
    """
    name, _, amount = text.partition("=")
    try:
        found = float(amount or 1)
    except ValueError:
        found = 0.0
    if not name or not 0 < found < float("inf"):
        raise ValueError(f"{text!r} is not a resource. Write GPU, or licence=0.5.")
    return name, found


def parse_border(text: str) -> str | float | None:
    """Return what lies beyond the edge: a mode, a number, or None for nothing.

    Examples
    --------
    >>> parse_border("mirror"), parse_border("0"), parse_border("none")
    ('mirror', 0.0, None)
    """
    if text in BORDERS:
        return None if text == "none" else text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is none of {', '.join(BORDERS)}, and not a number.") from None


memory_option = click.option(
    "--memory", type=Size(), help="Most memory the run may use, for example 4GB."
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(min=0),
    help="Start this many worker processes; 0 for one chunk after the other. "
    "By default barrow decides by measurement.",
)

_SHARED: tuple[Callable[[Any], Any], ...] = (
    click.argument("function", metavar="MODULE:FUNC"),
    click.argument("sources", metavar="SOURCE...", nargs=-1, required=True),
    click.option(
        "--whole", type=_Dim(), multiple=True, help="A dimension that must not be cut; repeat."
    ),
    click.option(
        "--halo",
        type=_Halo(),
        multiple=True,
        help="Neighbours needed around a chunk, for example y=16; repeat.",
    ),
    click.option(
        "--border",
        type=_Border(),
        default="reflect",
        show_default=True,
        help="What the halo holds beyond the edge: reflect, mirror, nearest, a number, or none.",
    ),
    click.option("--kwargs", type=_Kwargs(), help="Arguments of the function, as JSON."),
    memory_option,
    click.option(
        "--on-error",
        type=click.Choice(("stop", "skip")),
        default="stop",
        show_default=True,
        help="End the run when the function fails, or leave that chunk out.",
    ),
    click.option(
        "--like",
        type=click.Path(),
        help="A saved plan whose chunks, workers and cost are used instead of measuring.",
    ),
    workers_option,
    click.option(
        "--resource",
        "resources",
        type=_Resource(),
        multiple=True,
        callback=lambda _ctx, _param, found: dict(found) or None,
        help="What a task needs to itself, for example GPU or licence=0.5; repeat.",
    ),
)
