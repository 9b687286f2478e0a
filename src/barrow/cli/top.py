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
    doctor = _Doctor(record)

    def look() -> tuple[str, Any]:
        seen = glance(record)
        return seen.status, draw_top(seen, doctor.list_troubles())

    status, screen = look()
    if not once and console.is_terminal:
        with Live(screen, console=console, screen=True, auto_refresh=False) as live:
            while status == "running":
                time.sleep(max(0.1, seconds))
                status, screen = look()
                live.update(screen, refresh=True)
    console.print(screen)


class _Doctor:
    """Asked from time to time: a diagnosis reads the whole record."""

    def __init__(self, record: Any) -> None:
        self._record = record
        self._due = 0.0
        self._said: list[str] = []

    def list_troubles(self) -> list[str]:
        """Return what is wrong, a sentence for each."""
        from barrow.explaining import diagnose

        began = time.monotonic()
        if began >= self._due:
            found = diagnose(self._record.path.parent)
            self._said = [f"{f.code} {f.claim} {f.advice}" for f in found if f.is_trouble]
            self._due = time.monotonic() + max(5.0, 20 * (time.monotonic() - began))
        return self._said


def _find(folder: str | None) -> Any:
    from barrow.recording.going import find_newest
    from barrow.recording.reading import open_record

    if folder is not None:
        return open_record(folder)
    record = find_newest()
    if record is None:
        raise click.ClickException("No run goes on here. Name the folder of one.")
    return record
