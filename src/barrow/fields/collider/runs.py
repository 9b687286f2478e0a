"""What a processor made of its files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from barrow.fields.collider.loops import Loop, describe_loop, is_suspect
from barrow.fields.collider.skips import Skip
from barrow.model.finding import Finding
from barrow.model.run import Run as EngineRun
from barrow.units import format_count, format_seconds


@dataclass(frozen=True, eq=False)
class Run:
    """What a processor made of its files.

    Examples
    --------
    >>> import tempfile
    >>> from barrow import collider
    >>> path = collider.write_nanoaod(f"{tempfile.mkdtemp()}/few.root", 1000)
    >>> run = collider.run(lambda events: {"muons": int(collider.ak.sum(
    ...     collider.ak.num(events.Muon)))}, path)
    >>> run.metrics["entries"], sorted(run.metrics["columns"])
    (1000, ['nMuon'])
    """

    output: Any
    """The sum of what the processor returned, after its ``postprocess``."""
    metrics: Mapping[str, Any] = field(repr=False)
    """Numbers of the run; see :mod:`barrow.fields.collider.metrics`."""
    skipped: tuple[Skip, ...] = ()
    """Events that are not in the output, to the event, and why."""
    engine_run: EngineRun | None = field(default=None, repr=False)
    """The run of the engine room: its plan, folder and report."""
    find_loop: Callable[[], Loop | None] | None = field(default=None, repr=False)
    """Looks for a loop over events in the processor."""

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the doctor says about the run; of a slow processor also whether it loops."""
        if self.engine_run is None:
            return ()
        found = self.engine_run.findings
        if self.find_loop is None or not is_suspect(self.metrics):
            return found
        loop = self.find_loop()
        name = str(self.metrics["processor"])
        return found if loop is None else (*found, describe_loop(loop, name, self.metrics))

    @property
    def record(self) -> Any:
        """The record of the run, as tables; None if the output was there already."""
        if self.engine_run is None:
            return None
        from barrow.observing import record

        return record(self.engine_run.folder)

    @property
    def report_path(self) -> Path | None:
        """The report, one HTML file; None if the output was there already."""
        return None if self.engine_run is None else self.engine_run.report_path

    def __str__(self) -> str:
        m = self.metrics
        lines = [
            f"{m['entries']:,} of {m['entries_planned']:,} events in "
            f"{format_seconds(m['wall_seconds'])} ({m['kHz']:,.0f} kHz, "
            f"{m['kHz_per_core']:,.0f} kHz for each core, {m['Gbit_per_second']:.2f} Gbit/s), "
            f"{format_count(m['chunks'], 'call')}, {format_count(len(m['columns']), 'column')}. "
            + m["advice"]
        ]
        return "\n".join([*lines, *(f"Skipped: {skip}" for skip in self.skipped)])
