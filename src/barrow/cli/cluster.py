"""``barrow cluster``: what there is to run on; start workers that stay, and stop them."""

import os
import signal
import time
from contextlib import suppress
from typing import Any

import click

from barrow.cli.options import Size
from barrow.errors import ClusterError, InputError

STOP_SECONDS = 60.0
LOOK_SECONDS = 1.0


@click.group("cluster", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show what there is to run on, and what barrow would do with it.

    `barrow cluster start` starts workers that stay until `barrow cluster stop`.
    """
    if ctx.invoked_subcommand is not None:
        return
    from barrow.sites.surveying import survey

    for line in survey():
        click.echo(line)


@command.command("start")
@click.argument("kind", type=click.Choice(["local", "slurm"]), default="local")
@click.option("--workers", type=click.IntRange(min=1), help="Processes on this machine.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of each of them.")
@click.option("--memory", type=Size(), help="Memory of each worker, for example 4GB.")
@click.option("--partition", help="SLURM: where jobs go; by default the smallest that suffices.")
@click.option("--jobs", type=click.IntRange(min=1), help="SLURM: how many.")
@click.option("--cores", type=click.IntRange(min=1), help="SLURM: cores of each job.")
@click.option("--walltime", help="SLURM: for example 2h; jobs are replaced before it is over.")
@click.option("--account", help="SLURM: who pays.")
def start(kind: str, **options: Any) -> None:
    """Start workers on this machine, or as jobs of SLURM, and stay until stopped.

    Prints how other programs of yours can use them. Nobody else can: they are
    reached with a certificate that only you can read. Ctrl-C stops them, and so
    does `barrow cluster stop`.
    """
    import barrow
    from barrow.sites.announcing import announcing

    given = {name: value for name, value in options.items() if value is not None}
    signal.signal(signal.SIGTERM, _interrupt)
    with (
        suppress(KeyboardInterrupt),
        barrow.cluster(kind, **given) as cluster,
        announcing(cluster, kind) as announced,
    ):
        click.echo(
            f"{announced.name} is up: {cluster}\n\n"
            "Use it from another program of yours, on this machine:\n"
            f"  export DASK_SCHEDULER_FILE={announced.path}\n"
            "or by its address or that file:\n"
            f'  barrow.map(..., cluster="{announced.address}")\n\n'
            f"Stop it with Ctrl-C, or: barrow cluster stop {announced.name}"
        )
        while not cluster.failures:
            time.sleep(LOOK_SECONDS)
        raise ClusterError("\n".join(cluster.failures))
    click.echo("Stopped.")


@command.command("stop")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "wants_all", is_flag=True, help="Stop all that there are.")
def stop(names: tuple[str, ...], wants_all: bool) -> None:
    """Stop workers that `barrow cluster start` has started; by NAME if there are several."""
    from barrow.sites.announcing import list_announced

    there = {announced.name: announced for announced in list_announced()}
    if not there:
        raise InputError("There is no cluster to stop.")
    known = ", ".join(there)
    for name in names:
        if name not in there:
            raise InputError(f"There is no cluster {name!r}. There are: {known}.")
    if not names and len(there) > 1 and not wants_all:
        raise InputError(f"There are several: {known}. Say which, or --all.")
    for announced in there.values():
        if names and announced.name not in names:
            continue
        if not announced.is_here:
            raise InputError(f"{announced.name} is held by {announced.host}: stop it there.")
        with suppress(ProcessLookupError):
            os.kill(announced.pid, signal.SIGTERM)
        last = time.monotonic() + STOP_SECONDS
        while announced.is_alive:
            if time.monotonic() > last:
                raise ClusterError(
                    f"{announced.name} (process {announced.pid}) did not end within "
                    f"{STOP_SECONDS:.0f} s."
                )
            time.sleep(0.05)
        click.echo(f"{announced.name} is stopped.")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
