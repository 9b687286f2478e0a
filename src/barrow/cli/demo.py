"""``barrow demo``: see it work, on data it makes itself."""

import tempfile
from pathlib import Path

import click

from barrow.errors import OutputError


@click.command("demo")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep image and result here.")
@click.option("--side", type=click.IntRange(min=64), default=6144, hidden=True)
def command(keep: Path | None, side: int) -> None:
    """See barrow work: 15 seconds, on data it makes itself."""
    from barrow.cli.tour import give_tour

    if keep is None:
        with tempfile.TemporaryDirectory(prefix="barrow-demo-") as folder:
            give_tour(Path(folder), side)
        click.echo("All of it is removed again; barrow demo --keep FOLDER keeps it.")
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise OutputError(f"{keep} exists and is not empty. Choose another folder.")
    keep.mkdir(parents=True, exist_ok=True)
    give_tour(keep, side)
    click.echo(f"Kept in {keep}: slide.zarr, enhanced.zarr")
