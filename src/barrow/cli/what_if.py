"""``barrow what-if``: what a run would take with other workers."""

from typing import Any

import click

from barrow.cli.options import Length, Numbers, Size


@click.command("what-if")
@click.argument("folder", type=click.Path())
@click.option("--workers", type=Numbers(), help="How many; several for a curve, as in 1,2,4.")
@click.option("--memory", type=Size(), help="Of each worker, for example 4GB.")
@click.option("--chunk", type=Length(), multiple=True, help="Another length of chunks; repeat.")
@click.option("--disk", "disk_gbps", type=float, help="GB per second of the disk they share.")
@click.option("--cores", type=click.IntRange(min=1), help="Of all workers together.")
@click.option("--threads", type=click.IntRange(min=1), help="Of each worker.")
@click.option("--queue", "queue_seconds", type=float, help="Seconds until workers come.")
@click.option("--losses", "losses_per_hour", type=float, help="For each hour of a worker.")
@click.option("--times", type=float, default=1.0, help="How many times as much data.")
@click.option("--seed", type=int, default=0, help="For what is drawn by chance.")
@click.option(
    "--save",
    "places",
    type=click.Path(),
    multiple=True,
    help="Write a page (NAME.html), its figure (NAME.png) or all numbers (NAME.json); repeat.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON.")
def command(
    folder: str,
    chunk: tuple[tuple[str, int], ...],
    places: tuple[str, ...],
    as_json: bool,
    **asked: Any,
) -> None:
    """Foresee what a run would take with other workers, from its record alone.

    FOLDER is that of a run, of a watched program, or the place of a stored result. What is
    not given stays as it was.
    """
    from barrow.forecasting.what_if import what_if

    found = what_if(folder, chunk=dict(chunk) or None, **asked)
    click.echo(found.to_json() if as_json else str(found))
    for place in places:
        click.echo(f"Written: {found.save(place)}", err=True)
