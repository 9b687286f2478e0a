"""A finding: a claim about a run, with its evidence and what to do."""

from dataclasses import dataclass
from typing import Literal

from barrow.model.finding_text import format_html, list_lines

Severity = Literal["note", "warning", "failure"]
SEVERITIES: tuple[Severity, ...] = ("note", "warning", "failure")
"""From the least to the most."""
FAMILIES = {
    "MEM": "memory",
    "CHK": "chunks",
    "WRK": "workers",
    "CPU": "CPU",
    "DAT": "data",
    "SLM": "SLURM",
    "COD": "code",
}


@dataclass(frozen=True)
class Finding:
    """What a rule says about a run.

    Examples
    --------
    >>> spilled = Finding("MEM05", "note", "Worker 0 wrote results to disk.", ("1.2 GiB written",))
    >>> spilled.family, spilled.is_trouble
    ('memory', False)
    """

    code: str
    """Keeps its meaning for ever; ``docs/findings`` has a page for each."""
    severity: Severity
    """A failure lost work or stopped the run; a warning cost much or may kill the next run."""
    claim: str
    """One sentence, with the user's own names."""
    evidence: tuple[str, ...] = ()
    """Sentences with the numbers it rests on."""
    advice: str = ""
    """What to do, ready to be pasted where that is possible."""
    saves_seconds: float = 0.0
    """About how much sooner the run would have ended without it."""
    saves_bytes: int = 0
    """About how much less memory it would have held."""
    remedy: str = ""
    """What barrow can do about it by itself while it runs: trim, restart, ...; empty if nothing."""

    @property
    def family(self) -> str:
        """What it is about: memory, chunks, workers, CPU, data, SLURM or code."""
        return FAMILIES[self.code[:3]]

    @property
    def is_trouble(self) -> bool:
        """Whether it is more than a note."""
        return self.severity != "note"

    def __str__(self) -> str:
        return "\n    ".join(list_lines(self))

    def _repr_html_(self) -> str:
        return format_html([self])


class Findings(tuple[Finding, ...]):
    """All that was found, the gravest first: a tuple that a notebook shows well."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return format_html(self)
