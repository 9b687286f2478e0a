"""``barrow scaling``: how a script scales with the number of workers."""

from pathlib import Path

import click

from barrow.cli.options import Numbers, Size


@click.command(
    "scaling",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--workers", type=Numbers(), default="1,2,4", show_default=True, help="To try.")
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=1, help="Of each worker.")
@click.option("--memory", type=Size(), help="Of each worker, for example 2GB.")
@click.option("--folder", type=click.Path(), help="Keep the record of every execution there.")
@click.option(
    "--save",
    "places",
    type=click.Path(),
    multiple=True,
    help="Write a page (NAME.html), its figures (NAME.png) or all numbers (NAME.json); repeat.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def command(
    workers: list[int],
    repeats: int,
    threads: int,
    memory: int | None,
    folder: str | None,
    places: tuple[str, ...],
    as_json: bool,
    program: tuple[str, ...],
) -> None:
    """Run a Dask program with several numbers of workers, and say which to choose.

    PROGRAM is a Python script and its arguments, or -m, a module and its arguments. For each
    number of workers a cluster is offered: Client() without arguments finds it. A program that
    makes its own cluster takes the number of workers from the variable BARROW_WORKERS. Dask
    without a cluster gets as many threads.
    """
    from barrow.studying.measuring import scaling
    from barrow.studying.workloads import Script

    if not program or program == ("-m",):
        raise click.UsageError("Name a script, or a module with -m.")
    if program[0] != "-m" and not Path(program[0]).exists():
        raise click.UsageError(f"There is no file {program[0]!r}.")
    found = scaling(
        Script(program), workers, repeats, threads=threads, memory=memory, folder=folder
    )
    click.echo(found.to_json() if as_json else str(found))
    for place in places:
        click.echo(f"Written: {found.save(place)}", err=True)
