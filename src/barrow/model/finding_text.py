"""A finding for people: lines in a terminal, a block in a notebook."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from barrow.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from barrow.model.finding import Finding

COLOURS = {"failure": "#c62828", "warning": "#b26a00", "note": "#3b6ea5"}
NOTHING = "Nothing is wrong with this run, as far as its record tells."


def list_lines(finding: "Finding", seconds: float = 0.0) -> list[str]:
    """Return the claim, what it rests on, what fixing it saves of so many seconds, what to do.

    Examples
    --------
    >>> from barrow import Finding
    >>> list_lines(Finding("MEM05", "note", "Workers wrote to disk.", ("1 GiB",), "Use less."))
    ['note MEM05: Workers wrote to disk.', '1 GiB', 'What to do: Use less.']
    """
    lines = [f"{finding.severity} {finding.code}: {finding.claim}", *finding.evidence]
    lines += [gain] if (gain := describe_gain(finding, seconds)) else []
    return [*lines, f"What to do: {finding.advice}"] if finding.advice else lines


def describe_gain(finding: "Finding", seconds: float) -> str:
    """Return what fixing something would save, in a sentence; empty if nobody knows.

    Examples
    --------
    >>> from barrow import Finding
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


def format_html(findings: Sequence["Finding"]) -> str:
    """Return findings as blocks for a notebook, readable on light and dark."""
    return "".join(map(_format_block, findings)) or f"<p>{NOTHING}</p>"


def _format_block(finding: "Finding") -> str:
    colour = COLOURS[finding.severity]
    head, *lines = list_lines(finding)
    label, _, claim = head.partition(": ")
    return (
        f"<div style='border-left:4px solid {colour};padding:0 0 0 .8em;margin:.6em 0'>"
        f"<b style='color:{colour}'>{escape(label)}</b> {escape(claim)}"
        + "".join(f"<div style='opacity:.85'>{escape(line)}</div>" for line in lines)
        + "</div>"
    )
