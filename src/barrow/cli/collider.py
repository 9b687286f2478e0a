"""``barrow collider``: a processor over the events of many files."""

from typing import Any

import click

from barrow.cli.loading import load_function, open_workers
from barrow.cli.options import memory_option, workers_option


@click.group("collider")
def command() -> None:
    """Events in files: processors, as for coffea, and their histograms."""


@command.command("run")
@click.argument("processor", metavar="FILE.py:PROCESSOR")
@click.argument("fileset", nargs=-1, required=True)
@click.option("-o", "--to", type=click.Path(), required=True, help="File for the pickled output.")
@click.option("--tree", default="Events", show_default=True, help="Name of the tree.")
@click.option(
    "--schema", default="nanoaod", type=click.Choice(("nanoaod", "flat")), show_default=True
)
@click.option(
    "--on-error",
    default="stop",
    type=click.Choice(("stop", "skip", "skip-file")),
    show_default=True,
    help="Leave out events that cannot be read or processed, or their whole file.",
)
@click.option("--chunksize", type=int, help="Events in one call; by default measured.")
@click.option("--maxchunks", type=int, help="Do no more than so many chunks of each dataset.")
@workers_option
@memory_option
@click.option("--quiet", is_flag=True, help="Print nothing.")
def run(
    processor: str, fileset: tuple[str, ...], tree: str, workers: int | None, **options: Any
) -> None:
    """Apply a processor to a fileset: a JSON file, or paths and globs."""
    from barrow.fields.collider.api import run as run_processor

    work = load_function(processor)
    files = fileset[0] if len(fileset) == 1 else list(fileset)
    with open_workers(workers) as cluster:
        done = run_processor(work, files, treename=tree, cluster=cluster, **options)
    if not options["quiet"]:
        click.echo(f"{done}\nOutput in {options['to']}")


@command.command("make")
@click.argument("path", type=click.Path())
@click.argument("events", type=int)
@click.option("--wide", is_flag=True, help="1000 more branches, as real NanoAOD has them.")
@click.option("--seed", default=0, show_default=True)
def make(path: str, events: int, wide: bool, seed: int) -> None:
    """Write made-up events to PATH, which ends in .root or .parquet."""
    from barrow.fields.collider.synthetic import write_nanoaod

    write_nanoaod(path, events, wide=wide, seed=seed)
    click.echo(f"{events} events in {path}")
