"""The command ``barrow``: finds a command by its name and loads it when it is needed.

Nothing but click is imported here, so that help appears at once.
"""

from importlib import import_module
from typing import Any

import click

import barrow
from barrow.cli.examples import add_examples
from barrow.cli.interrupted import ending_cleanly
from barrow.errors import BarrowError

COMMANDS = (
    "demo",
    "plan",
    "map",
    "resume",
    "watch",
    "top",
    "report",
    "compare",
    "diagnose",
    "doctor",
    "scaling",
    "what-if",
    "cluster",
    "ephys",
    "miniscope",
    "spatial",
    "collider",
    "completion",
)


class LazyGroup(click.Group):
    """Commands that live in modules of their own."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - given by click
        """Return the names of all commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        found: click.Command = import_module(f"barrow.cli.{name}").command
        add_examples(found, cmd_name)
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what barrow refuses is told without a traceback."""
        try:
            with ending_cleanly():
                return super().invoke(ctx)
        except BarrowError as error:
            notes = getattr(error, "__notes__", ())
            raise click.ClickException("\n".join([str(error), *notes])) from None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(barrow.__version__, message="barrow %(version)s")
def main() -> None:
    """Run your own function over data larger than memory.

    \b
    First steps:
      barrow demo                                  see it work
      barrow doctor                                is this machine fit for it?
      barrow map numpy:sqrt x.npy --to out.zarr    a function over a file
      barrow watch script.py                       a Dask program, as it is

    `barrow COMMAND --help` has examples of each.
    """
