"""``barrow map``: run a function over data and store its result."""

from pathlib import Path
from typing import Any

import click

from barrow.cli.interrupted import ending_cleanly
from barrow.cli.options import work_options
from barrow.cli.skipped import listing_skipped


@click.command("map")
@work_options
@click.option("--to", type=click.Path(), required=True, help="Zarr store for the result.")
@click.option("--quiet", is_flag=True, help="Print neither plan nor progress.")
def command(
    function: str,
    sources: tuple[str, ...],
    halo: tuple[Any, ...],
    workers: int | None,
    to: str,
    quiet: bool,
    **options: Any,
) -> None:
    """Apply a function to data of any size and store its answers.

    The function is named as module:function or path/to/file.py:function, and
    takes one NumPy array for each SOURCE: the path of a .npy, Zarr, OME-Zarr,
    HDF5 or TIFF file. One array of several in a file is chosen by
    path::name.

    The same command again, or `barrow resume`, takes up a run that was
    interrupted.
    """
    import barrow
    from barrow.cli.loading import load_function, load_source, open_workers

    func = load_function(function)
    opened = [load_source(source) for source in sources]
    was_there = Path(to).exists()
    with ending_cleanly(quiet), open_workers(workers) as cluster:
        plan = barrow.plan(
            func, *opened, halo=dict(halo), to=to, quiet=quiet, cluster=cluster, **options
        )
        if not quiet and not was_there:
            click.echo(f"{plan}\n", err=True)
        with listing_skipped() as show:
            run = show(barrow.run(plan))
    if not quiet:
        click.echo(f"{to} holds this result already." if was_there else f"{run}\nResult in {to}")
