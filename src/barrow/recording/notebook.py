"""Watch a cell of a notebook: ``%load_ext barrow``, then ``%%watch FOLDER`` above a cell."""

import time
from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Give a notebook the magic ``%%watch``."""
    shell.register_magic_function(_make_magic(shell), "cell", "watch")


def _make_magic(shell: Any) -> Any:
    def watch(line: str, cell: str) -> None:
        """Run a cell and record what Dask does; the folder can be named, and is told."""
        import barrow
        from barrow.recording.watching import summarise

        folder = line.strip() or f"barrow-cell-{time.strftime('%Y%m%d-%H%M%S')}"
        with barrow.watch(folder) as run:
            result = shell.run_cell(cell)
        shell.user_ns["watched"] = run
        print(summarise(run))
        # The cell's own error was shown; a cell that runs all cells must stop here.
        result.raise_error()

    return watch
