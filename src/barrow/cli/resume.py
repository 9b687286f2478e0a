"""``barrow resume``: finish a run that was interrupted."""

import click

from barrow.cli.interrupted import ending_cleanly
from barrow.cli.options import memory_option, workers_option


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

    found = find_run(folder)
    with ending_cleanly(quiet), open_workers(None if found.is_finished else workers) as cluster:
        run = barrow.resume(folder, memory=memory, cluster=cluster, quiet=quiet)
    if quiet:
        return
    if found.is_finished:
        click.echo(f"{folder} is finished.\n{run}")
        return
    before = run.metrics["chunks_found"]
    click.echo(f"{run}; {before:,} of them were done before\nResult in {found.final}")
