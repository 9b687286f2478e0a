"""``barrow resume``: finish a run that was interrupted."""

import click

from barrow.cli.interrupted import ending_cleanly
from barrow.cli.options import memory_option, workers_option
from barrow.cli.skipped import listing_skipped


@click.command("resume")
@click.argument("folder", type=click.Path())
@memory_option
@workers_option
@click.option("--quiet", is_flag=True, help="Print no progress.")
def command(folder: str, memory: int | None, workers: int | None, quiet: bool) -> None:
    """Finish a run that was interrupted or killed, without its script.

    FOLDER is where its result goes to, or the hidden .NAME.partial beside it.
    Chunks that are done are kept; a function or data that have changed since
    are an error.

    This runs code that your own run has stored in the folder. What others have
    stored is refused.
    """
    import barrow
    from barrow.cli.loading import open_workers
    from barrow.running.folders import find_run
    from barrow.running.saved_call import importable

    found = find_run(folder)
    if found.final is None:
        run = barrow.resume(folder)
        if not quiet:
            click.echo(f"{folder} is finished.\n{run}")
        return
    # Workers look for modules where this process does when they start.
    with (
        ending_cleanly(quiet),
        importable(found),
        open_workers(workers) as cluster,
        listing_skipped() as show,
    ):
        run = show(barrow.resume(folder, memory=memory, cluster=cluster, quiet=quiet))
    if not quiet:
        before = run.metrics["chunks_found"]
        click.echo(f"{run}; {before:,} of them were done before\nResult in {found.final}")
