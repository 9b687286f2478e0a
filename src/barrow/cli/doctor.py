"""``barrow doctor``: looks at the installation and the site before any run."""

import sys

import click

SIGNS = {"good": "ok", "beware": "!!", "bad": "XX"}


@click.command("doctor")
def command() -> None:
    """Look at this installation and this machine, before any run.

    Versions, cores, free memory, limits, scratch, threads, encryption, SLURM.
    The exit status is 1 if something would keep barrow from running.
    """
    from barrow.examining import examine

    checks = examine()
    for check in checks:
        click.echo(f"{SIGNS[check.verdict]}  {check.name:<11} {check.text}")
    sys.exit(any(check.verdict == "bad" for check in checks))
