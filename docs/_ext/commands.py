"""A directive for the reference of the command line: the help of every command, as it is printed.

Help that is read from the commands themselves cannot say anything else than they do.
"""

from collections.abc import Iterator

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from barrow.cli.main import main

COLUMNS = 96


class Commands(Directive):
    """A section for each command of ``barrow``, and for each of its own commands."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        top = click.Context(main, info_name="barrow", terminal_width=COLUMNS)
        found: list[nodes.Node] = []
        for context in walk_commands(top):
            name = context.command_path
            section = nodes.section(ids=[name.replace(" ", "-")], names=[name])
            section += nodes.title(name, name)
            section += nodes.literal_block(context.get_help(), context.get_help(), language="text")
            found.append(section)
        return found


def walk_commands(context: click.Context) -> Iterator[click.Context]:
    """Yield a command and all commands below it, in the order of the help."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                yield from walk_commands(click.Context(command, info_name=name, parent=context))


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
