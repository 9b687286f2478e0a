"""``barrow completion``: lines that let a shell complete commands, options and files."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print what lets a SHELL complete commands, options and files."""
    kind = get_completion_class(shell)
    assert kind is not None  # click knows all of SHELLS
    click.echo(kind(ctx.find_root().command, {}, "barrow", "_BARROW_COMPLETE").source())
