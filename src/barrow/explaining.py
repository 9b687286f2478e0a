"""Explain a run: its record is read, diagnosed, and becomes a report.

Reading belongs to ``recording``, judging to ``diagnosing``, saying to ``reporting``; none of them
knows the others.
"""

import warnings
from os import PathLike
from pathlib import Path

from barrow.model.finding import Findings
from barrow.recording.reading import Record, open_record
from barrow.reporting.content import Content
from barrow.reporting.costs import is_worth_its_time


def explain(folder: str | PathLike[str]) -> Content:
    """Return what a report says of the run in a folder, also of one that goes on."""
    return explain_record(open_record(folder))


def explain_record(record: Record) -> Content:
    """Return what a report says of a record."""
    from barrow.diagnosing.diagnose import diagnose as find
    from barrow.forecasting.what_if import foresee_curve
    from barrow.reporting.writing import read_content

    # What is not over yet says little about what it would take with others.
    outlook = foresee_curve(record) if "ended" in record.facts else None
    return read_content(record, find(record), outlook)


def write_report(folder: str | PathLike[str], to: str | PathLike[str] | None = None) -> Path:
    """Write the report of a run beside its record, or elsewhere; return its path."""
    from barrow.reporting.writing import write_page

    record = open_record(folder)
    return write_page(explain_record(record), record.path.parent if to is None else Path(to))


def diagnose(folder: str | PathLike[str]) -> Findings:
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
    from barrow.diagnosing.diagnose import diagnose as find

    return Findings(find(open_record(folder)))


def write_unasked(folder: Path, run_seconds: float, chunks: int) -> None:
    """Write the report of a run that has just ended, if that costs next to nothing."""
    if is_worth_its_time(run_seconds, chunks):
        write_safely(folder)
        return
    # What an earlier part of this run has left is no longer true.
    for name in ("report.html", "report.json"):
        (folder / name).unlink(missing_ok=True)


def write_safely(folder: Path) -> None:
    """Write the report of what has ended: it never fails for want of a report."""
    try:
        write_report(folder)
    except Exception as error:
        warnings.warn(
            f"The run has ended, but its report could not be written: {error}", stacklevel=3
        )
