"""A report in a terminal: the sentence, what was predicted, the steps, what went wrong."""

from collections.abc import Sequence

from barrow.reporting.content import Content, Quantiles
from barrow.reporting.words import plain, shorten
from barrow.units import format_bytes, format_seconds

MOST_LINES = 8
NAME_LENGTH = 40


def format_text(content: Content) -> str:
    """Return the summary of a run, in lines that are at most as long as their names."""
    lines = [plain(content.headline), ""]
    if content.prediction and content.prediction.rows:
        compared = [
            (row.heading, row.predicted, row.measured, _say_factor(row.factor))
            for row in content.prediction.rows
        ]
        lines += [*align([("", "predicted", "measured", ""), *compared]), ""]
    if content.steps:
        head = ("step", "tasks", "total", "median", "95 %", "max", "peak")
        rows = [
            (
                shorten(plain(step.name), NAME_LENGTH),
                f"{step.tasks:,}" + (f" ({step.failed} failed)" if step.failed else ""),
                format_seconds(step.total_seconds),
                *_list_seconds(step.seconds),
                format_bytes(step.peak_bytes.most) if step.peak_bytes else "-",
            )
            for step in content.steps[:MOST_LINES]
        ]
        lines += [*align([head, *rows]), *_say_more(content.steps), ""]
    for finding in content.findings:
        lines += [plain(f"{finding.code} {finding.severity}: {finding.claim}")]
        lines += [f"  {plain(line)}" for line in finding.evidence]
        lines += [f"  → {plain(finding.advice)}"] if finding.advice else []
    lines += [""] if content.findings else []
    if content.skipped:
        lines.append("Left out:")
        lines += [
            f"  {plain(row.heading)}: {shorten(plain(row.text), 200)}"
            for row in content.skipped[:MOST_LINES]
        ]
        lines += [*_say_more(content.skipped), ""]
    if told := content.events:
        lines += [
            f"{format_seconds(max(0.0, event.time)):>11}  {shorten(plain(event.message), 200)}"
            for event in told[:MOST_LINES]
        ]
        lines += [*_say_more(told), ""]
    return "\n".join(lines).rstrip()


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as columns: the first one to the left, numbers to the right.

    Examples
    --------
    >>> print("\\n".join(align([("step", "time"), ("denoise", "3.2 s")])))
    step      time
    denoise  3.2 s
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _list_seconds(seconds: Quantiles | None) -> tuple[str, str, str]:
    if seconds is None:
        return "-", "-", "-"
    return (
        format_seconds(seconds.median),
        format_seconds(seconds.high),
        format_seconds(seconds.most),
    )


def _say_factor(factor: float | None) -> str:
    return f"× {factor:.2f}" if factor else ""


def _say_more(rows: Sequence[object]) -> list[str]:
    return [f"… and {len(rows) - MOST_LINES} more"] if len(rows) > MOST_LINES else []
