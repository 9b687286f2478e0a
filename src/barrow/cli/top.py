"""``barrow top``: how far a run is and how it fares, on one screen."""

import time
from typing import Any

import click

SECONDS = 1.0


@click.command("top")
@click.argument("folder", type=click.Path(), required=False)
@click.option("--once", is_flag=True, help="Print it once and end.")
@click.option("--seconds", default=SECONDS, show_default=True, help="How often to look.")
def command(folder: str | None, once: bool, seconds: float) -> None:
    """Show a run while it goes on: progress, memory of its processes, warnings.

    FOLDER is that of a run or of a watched program, or the place of a stored result; without it,
    the newest run on this machine that still goes on. Ends with the run, or with Ctrl-C.
    """
    from rich.console import Console
    from rich.live import Live

    from barrow.recording.glancing import glance
    from barrow.reporting.top import draw_top

    record = _find(folder)
    console = Console(highlight=False, soft_wrap=False)
    seen = glance(record)
    if once or not console.is_terminal:
        console.print(draw_top(seen))
        return
    with Live(draw_top(seen), console=console, screen=True, auto_refresh=False) as live:
        while seen.status == "running":
            time.sleep(max(0.1, seconds))
            seen = glance(record)
            live.update(draw_top(seen), refresh=True)
    console.print(draw_top(seen))


def _find(folder: str | None) -> Any:
    from barrow.recording.going import find_newest
    from barrow.recording.reading import open_record

    if folder is not None:
        return open_record(folder)
    record = find_newest()
    if record is None:
        raise click.ClickException("No run goes on here. Name the folder of one.")
    return record
