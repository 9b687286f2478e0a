"""What Ctrl-C looks like in a shell: one line, no traceback, exit code 130."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

EXIT_CODE = 130


@contextmanager
def ending_cleanly(quiet: bool = True) -> Iterator[None]:
    """End the command on Ctrl-C; say how to go on, unless the run itself has said it."""
    try:
        yield
    except KeyboardInterrupt as error:
        hints = getattr(error, "__notes__", [])
        if quiet or not hints:
            click.echo(hints[-1] if hints else "Interrupted.", err=True)
        raise SystemExit(EXIT_CODE) from None
