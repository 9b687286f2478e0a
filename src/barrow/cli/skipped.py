"""What a shell shows of chunks that were left out: a list instead of a warning."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from barrow.errors import SkippedWarning

if TYPE_CHECKING:
    from barrow.model.run import Run

MOST_SHOWN = 10


@contextmanager
def listing_skipped() -> "Iterator[Callable[[Run], Run]]":
    """Yield what shows the skipped chunks of a run and returns it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedWarning)  # it is said here
        yield _show


def _show(run: "Run") -> "Run":
    for skipped in run.skipped[:MOST_SHOWN]:
        click.echo(f"Skipped: {skipped}", err=True)
    if len(run.skipped) > MOST_SHOWN:
        click.echo(f"... and {len(run.skipped) - MOST_SHOWN} more.", err=True)
    return run
