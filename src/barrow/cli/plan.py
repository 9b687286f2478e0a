"""``barrow plan``: show how a function would run, without running it on all the data."""

from typing import Any

import click

from barrow.cli.options import work_options


@click.command("plan")
@work_options
@click.option("--to", type=click.Path(), help="Zarr store that the result would go to.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def command(
    function: str,
    sources: tuple[str, ...],
    halo: tuple[Any, ...],
    workers: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure a function on a little of the data and print the plan.

    The arguments are those of `barrow map`.
    """
    import barrow
    from barrow.cli.loading import load_function, load_source, open_workers

    func = load_function(function)
    opened = [load_source(source) for source in sources]
    with open_workers(workers) as cluster:
        plan = barrow.plan(func, *opened, halo=dict(halo), cluster=cluster, **options)
    click.echo(plan.to_json() if as_json else str(plan))
