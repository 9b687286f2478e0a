"""Explain a run: its record is read, and becomes a report.

Reading belongs to ``recording``, saying to ``reporting``; neither knows the other.
"""

import warnings
from os import PathLike
from pathlib import Path

from barrow.model.finding import Finding
from barrow.recording.reading import open_record
from barrow.reporting.costs import is_worth_its_time


def write_report(folder: str | PathLike[str], to: str | PathLike[str] | None = None) -> Path:
    """Write the report of a run beside its record, or elsewhere; return its path."""
    from barrow.reporting.writing import read_content, write_page

    record = open_record(Path(folder))
    return write_page(read_content(record), record.path.parent if to is None else Path(to))


def diagnose(folder: str | PathLike[str]) -> tuple[Finding, ...]:
    """Return what is wrong with a run, from its record alone; the gravest first.

    Parameters
    ----------
    folder
        Of a run, of a watched program, or a stored result; also of one that was killed, or that
        still runs.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> run = barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0)))
    >>> barrow.diagnose(run.folder)
    ()
    """
    from barrow.diagnosing import diagnose as find

    return tuple(find(open_record(folder)))


def write_unasked(folder: Path, run_seconds: float, chunks: int) -> None:
    """Write the report of a run that has just ended, if that costs next to nothing.

    A run never fails for want of a report.
    """
    if not is_worth_its_time(run_seconds, chunks):
        # What an earlier part of this run has left is no longer true.
        for name in ("report.html", "report.json"):
            (folder / name).unlink(missing_ok=True)
        return
    try:
        write_report(folder)
    except Exception as error:
        warnings.warn(
            f"The run has ended, but its report could not be written: {error}", stacklevel=2
        )
