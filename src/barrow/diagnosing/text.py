"""Findings as text for a terminal."""

from collections.abc import Sequence

from barrow.model.finding import Finding
from barrow.units import format_bytes, format_seconds


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
        return "Nothing is wrong with this run, as far as its record tells."
    return "\n\n".join("\n    ".join(_list_lines(finding, seconds)) for finding in findings)


def _list_lines(finding: Finding, seconds: float) -> list[str]:
    lines = [f"{finding.severity} {finding.code}: {finding.claim}", *finding.evidence]
    if gain := describe_gain(finding, seconds):
        lines.append(gain)
    return [*lines, f"What to do: {finding.advice}"]


def describe_gain(finding: Finding, seconds: float) -> str:
    """Return what fixing something would save, in a sentence; empty if nobody knows.

    Examples
    --------
    >>> describe_gain(Finding("MEM08", "note", "…", saves_bytes=2**30), 10)
    'Fixing this saves about 1.00 GiB.'
    """
    saved = []
    if finding.saves_seconds >= 0.05:
        whole = f" of {format_seconds(seconds)}" if seconds > finding.saves_seconds else ""
        saved.append(format_seconds(finding.saves_seconds) + whole)
    if finding.saves_bytes:
        saved.append(format_bytes(finding.saves_bytes))
    return f"Fixing this saves about {' and '.join(saved)}." if saved else ""
