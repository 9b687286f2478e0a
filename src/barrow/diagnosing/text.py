"""Findings as text for a terminal."""

from collections.abc import Sequence

from barrow.model.finding import Finding
from barrow.model.finding_text import NOTHING, list_lines


def format_findings(findings: Sequence[Finding], seconds: float = 0.0) -> str:
    """Return findings as lines, each with its evidence and its advice.

    Examples
    --------
    >>> found = Finding("MEM05", "note", "Workers wrote to disk.", ("1 GiB",), "Use less.", 4.0)
    >>> print(format_findings([found], seconds=10))
    note MEM05: Workers wrote to disk.
        1 GiB
        Fixing this saves about 4.0 s of 10.0 s.
        What to do: Use less.
    """
    if not findings:
        return NOTHING
    return "\n\n".join("\n    ".join(list_lines(finding, seconds)) for finding in findings)
