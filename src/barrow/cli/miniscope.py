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
@click.option("--pictures/--no-pictures", default=True, help="Write summary.html as well.")
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
        from barrow.fields.miniscope.summarising import write_summary

        write_summary(found)
    if not quiet:
        click.echo(f"{found.units} cells, {found.C.sizes['frame']} frames. Results in {to}")


@command.command("explore")
@click.argument("videos", metavar="FOLDER")
@click.option("-o", "--to", type=click.Path(), required=True, help="Folder for the pictures.")
@click.option("--params", type=click.Path(exists=True, dir_okay=False), help="JSON file.")
@click.option("--frames", type=click.IntRange(1), default=500, show_default=True)
@memory_option
def explore_(videos: str, to: str, params: str | None, frames: int, memory: int | None) -> None:
    """Try values of the main parameters on the first frames, and draw what they do."""
    from barrow.fields.miniscope.exploring import explore

    found = explore(videos, to=to, params=_read(params), frames=frames, memory=memory)
    for row in found.table:
        click.echo(
            f"{row['step']} {row['parameter']} = {row['value']}: {row['seeds']} seeds, "
            f"{row['cells']} cells, active in {row['active_share']:.1%} of frames"
        )
    click.echo(f"Pictures in {to}")


@command.command("nwb")
@click.argument("results", type=click.Path(exists=True, file_okay=False))
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--fps", type=float, default=20.0, show_default=True, help="Frames in a second.")
def nwb_(results: str, file: str, fps: float) -> None:
    """Write the results of a run as an NWB file."""
    from barrow.fields.miniscope import load, to_nwb

    to_nwb(load(results), file, fps=fps)


@command.command("film")
@click.argument("results", type=click.Path(exists=True, file_okay=False))
@click.argument("videos", metavar="FOLDER")
@click.option("-o", "--to", type=click.Path(dir_okay=False), help="The video; film.mp4 in RESULTS.")
@click.option("--frames", nargs=2, type=int, default=(0, 400), show_default=True)
def film_(results: str, videos: str, to: str | None, frames: tuple[int, int]) -> None:
    """Film a result: raw, processed and what the cells explain, side by side."""
    from barrow.fields.miniscope import film, load

    click.echo(f"Written to {film(load(results), videos, to, frames=frames)}")


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
