"""A progress line: chunks done, rate, time left and memory.

A live line on a terminal, plain lines elsewhere, nothing for work that is over
before anybody would look.
"""

import sys
import time
from typing import Any, TextIO

from barrow.running.task import TaskReport
from barrow.units import format_bytes, format_seconds

PATIENCE_SECONDS = 1.0
PLAIN_SECONDS = 5.0


class Progress:
    """Shows how far a run is. Used by one thread."""

    def __init__(
        self, name: str, total: int, done: int = 0, quiet: bool = False, file: TextIO | None = None
    ) -> None:
        self._name = name
        self._total = total
        self._before = done
        self._done = done
        self._quiet = quiet
        self._file = file if file is not None else sys.stderr
        self._began = time.monotonic()
        self._shown = 0.0
        self._memory: dict[str, int] = {}
        self._live: Any = None

    def update(self, report: TaskReport) -> None:
        """Take in a report, and show it if it is time."""
        self._done += report.n_cells
        self._memory[report.worker.partition("/")[0]] = report.resident_bytes
        if self._quiet:
            return
        now = time.monotonic()
        waited = now - (self._shown or self._began)
        is_terminal = self._file.isatty()
        if waited < (0.1 if is_terminal and self._shown else PATIENCE_SECONDS):
            return
        if not is_terminal and self._shown and waited < PLAIN_SECONDS:
            return
        self._shown = now
        if is_terminal:
            self._show_live()
        else:
            print(self.line(), file=self._file, flush=True)

    def skip(self) -> None:
        """Take in that a chunk was left out."""
        self._done += 1

    def say(self, message: str) -> None:
        """Show a sentence that somebody should read now."""
        if self._quiet:
            return
        text = f"{self._name}: {message}"
        if self._live is not None:
            self._live.console.print(text, highlight=False, markup=False)
        else:
            print(text, file=self._file, flush=True)

    def line(self) -> str:
        """Return the state in one line."""
        spent = max(1e-9, time.monotonic() - self._began)
        rate = (self._done - self._before) / spent
        left = (self._total - self._done) / rate if rate else 0.0
        share = self._done / max(1, self._total)
        return (
            f"{self._name}: {self._done:,} of {self._total:,} chunks ({share:.0%}), "
            f"{rate:,.1f} per second, {format_seconds(left)} left, "
            f"{format_bytes(sum(self._memory.values()))} in memory"
        )

    def close(self, outcome: str = "done") -> None:
        """End the display; say how it ended if anything was shown."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._shown and not self._quiet:
            spent = format_seconds(time.monotonic() - self._began)
            print(
                f"{self._name}: {self._done:,} of {self._total:,} chunks {outcome} in {spent}",
                file=self._file,
                flush=True,
            )

    def _show_live(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        if self._live is None:
            console = Console(file=self._file)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        row = Table.grid(padding=(0, 1))
        row.add_row(
            ProgressBar(total=self._total, completed=self._done, width=24), Text(self.line())
        )
        self._live.update(row, refresh=True)
