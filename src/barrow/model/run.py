"""A run: one execution of a plan, and what it left."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from barrow.model.finding import Finding, Findings
from barrow.model.plan import Plan
from barrow.model.skipped import Skipped
from barrow.units import format_bytes, format_count, format_seconds

MOST_SKIPPED = 8
"""Chunks that a notebook lists."""


@dataclass(frozen=True, eq=False)
class Run:
    """One execution of a plan.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> run = barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0)))
    >>> float(run.result[0, 0]), run.metrics["chunks"]
    (3.0, 1)
    """

    result: Any
    """The array, the DataArray or the value that the run made."""
    plan: Plan
    metrics: Mapping[str, Any]
    """Numbers of the run: chunks, seconds, bytes, peak memory."""
    folder: Path = field(repr=False)
    """Holds plan, record and metrics; goes with the result unless it was given a place."""
    skipped: tuple[Skipped, ...] = ()
    """Chunks without an answer: only with ``on_error="skip"``."""

    write_report: Callable[[Path], Path] | None = field(default=None, repr=False)
    """Makes the report when it is asked for; given by the layers above."""

    find: Callable[[Path], tuple[Finding, ...]] | None = field(default=None, repr=False)
    """Diagnoses the run when that is asked for; given by the layers above."""

    @cached_property
    def findings(self) -> Findings:
        """What is wrong with the run, the gravest first; see ``docs/findings``.

        Examples
        --------
        >>> import barrow, numpy as np
        >>> barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0))).findings
        ()
        """
        return Findings(() if self.find is None else self.find(self.folder))

    @property
    def report_path(self) -> Path:
        """The report of the run, one HTML file; written now if it is not there yet.

        Examples
        --------
        >>> import barrow, numpy as np
        >>> run = barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0)))
        >>> run.report_path.name
        'report.html'
        """
        path = self.folder / "report.html"
        if not path.exists() and self.write_report is not None:
            return self.write_report(self.folder)
        return path

    def __str__(self) -> str:
        m = self.metrics
        chunks = format_count(m["chunks"], "chunk")
        if self.skipped:
            chunks += f" ({len(self.skipped)} skipped)"
        return (
            f"'{self.plan.name}': {chunks} in {format_seconds(m['wall_seconds'])}, "
            f"{format_seconds(m['cpu_seconds'])} of CPU in tasks, largest process "
            f"{format_bytes(m['peak_resident_bytes'])}"
        )

    def _repr_html_(self) -> str:
        lines = [f"<p><b>{escape(str(self))}</b></p>", self.plan._repr_html_()]
        if self.folder.exists():  # it goes with a result that was given no place
            lines.append(self.findings._repr_html_())
            lines.append("<p><code>run.report_path</code>: tasks, workers and memory over time</p>")
        lines += [f"<p>left out: {escape(str(chunk))}</p>" for chunk in self.skipped[:MOST_SKIPPED]]
        return "".join(lines)
