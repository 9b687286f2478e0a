"""``barrow spatial``: functions and segmentations over images in files."""

from pathlib import Path
from typing import Any

import click

from barrow.cli.options import memory_option, workers_option


@click.group("spatial")
def command() -> None:
    """Images of tissue: functions, objects, scales.

    IMAGE is an OME-Zarr or TIFF file, or another file with dimensions c, z, y, x.
    """


def _shared(function: Any) -> Any:
    for add in reversed(
        (
            click.argument("image", metavar="IMAGE"),
            click.option(
                "--to", type=click.Path(), required=True, help="OME-Zarr store for the result."
            ),
            memory_option,
            workers_option,
            click.option("--quiet", is_flag=True, help="Print nothing."),
        )
    ):
        function = add(function)
    return function


@command.command("map")
@click.argument("function", metavar="MODULE:FUNC")
@_shared
@click.option("--depth", type=int, help="Pixels that the function needs around a block.")
@click.option("--chunks", type=int, help="Side of a block; by default as planned.")
def map_(function: str, **options: Any) -> None:
    """Apply a function to all blocks of an image, each with all channels."""
    from barrow.cli.loading import load_function
    from barrow.fields.spatial import map_raster

    func = load_function(function)
    _run(lambda image, **given: map_raster(image, func, **given), options)


@command.command("segment")
@_shared
@click.option("--channel", help="Name or number of the channel; the first by default.")
@click.option("--diameter", type=float, default=20.0, show_default=True, help="In pixels.")
@click.option("--threshold", type=float, help="Of brightness; by default from the histogram.")
@click.option("--chunks", type=int, help="Side of a tile; by default as planned.")
@click.option("--table", type=click.Path(), help="CSV file for a row for each object.")
def segment(table: str | None, channel: str | None, **options: Any) -> None:
    """Find bright, roundish objects, whole also where tiles meet."""
    from barrow.fields.spatial import segment as find

    if channel is not None:
        options["channel"] = int(channel) if channel.isdecimal() else channel
    found = _run(find, options)
    if table is not None:
        found.table.to_csv(table, index=False)
    if not options["quiet"]:
        click.echo(f"{len(found.table)} objects" + (f", listed in {table}" if table else ""))


@command.command("pyramid")
@_shared
@click.option("--levels", type=int, help="Number of scales; by default until one fits a screen.")
def pyramid(**options: Any) -> None:
    """Write an image as OME-Zarr with several scales."""
    from barrow.fields.spatial import pyramid as build

    _run(build, options)


def _run(call: Any, options: dict[str, Any]) -> Any:
    from barrow.cli.loading import open_workers

    given = {name: value for name, value in options.items() if value is not None}
    image, workers = given.pop("image"), given.pop("workers", None)
    with open_workers(workers) as cluster:
        found = call(image, cluster=cluster, **given)
    if not given["quiet"]:
        click.echo(f"Result in {Path(given['to'])}")
    return found
