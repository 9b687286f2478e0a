"""``barrow miniscope``: from videos to cells and traces."""

import json
from typing import Any

import click

from barrow.cli.options import memory_option


@click.group("miniscope")
def command() -> None:
    """Cells and traces of miniscope movies, larger than memory or not."""


@command.command("run")
@click.argument("videos", metavar="FOLDER")
@click.option("-o", "--to", type=click.Path(), required=True, help="Folder for the results.")
@click.option("--pattern", help="Regular expression for the names of the videos.")
@click.option("--params", type=click.Path(exists=True, dir_okay=False), help="JSON file.")
@click.option("--pictures", is_flag=True, help="Draw contours, traces and motion as well.")
@memory_option
@click.option("--quiet", is_flag=True, help="Print nothing.")
def run_(
    videos: str,
    to: str,
    pattern: str | None,
    params: str | None,
    pictures: bool,
    memory: int | None,
    quiet: bool,
) -> None:
    """Find the cells in a folder of videos (or one movie in a file).

    The same command goes on with a run that was interrupted; with other parameters it does
    again what depends on them.
    """
    from barrow.fields.miniscope import api

    chosen = _read(params)
    if pattern is not None:
        chosen["load_videos"] = {**chosen.get("load_videos", {}), "pattern": pattern}
    found = api.run(videos, to=to, params=chosen, memory=memory, quiet=quiet)
    if pictures:
        from barrow.fields.miniscope.pictures import draw_all

        draw_all(found)
    if not quiet:
        click.echo(f"{found.units} cells, {found.C.sizes['frame']} frames. Results in {to}")


@command.command("params")
def params_() -> None:
    """Print all parameters with their defaults, as JSON for ``run --params``."""
    from barrow.fields.miniscope.settings import DEFAULTS

    click.echo(json.dumps(DEFAULTS, indent=2))


def _read(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    from pathlib import Path

    from barrow.errors import InputError

    try:
        found = json.loads(Path(path).read_text())
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise InputError(f'{path} names no steps. Write {{"denoise": {{"ksize": 5}}}}.')
    return found
