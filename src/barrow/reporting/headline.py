"""The one sentence that opens a report."""

from collections.abc import Sequence

from barrow.model.finding import Finding
from barrow.reporting.content import Status
from barrow.reporting.words import shorten

_ENDS: dict[Status, str] = {
    "done": "took",
    "failed": "failed after",
    "interrupted": "was interrupted after",
    "killed": "was killed after",
    "running": "has been running for",
    "unknown": "has no end in its record (killed, or still running) after",
}


def write_headline(
    *,
    name: str,
    status: Status,
    time: str,
    work: str,
    memory: str,
    problems: Sequence[str],
    findings: Sequence[Finding],
    advice: str,
) -> str:
    """Return what ran, how long, how much memory, what was wrong, and the one thing to change.

    Examples
    --------
    >>> write_headline(name="denoise", status="done", time="3.2 s", work="12 chunks on 2 workers",
    ...     memory="91.8 MiB", problems=(), findings=(), advice="")
    "'denoise' took 3.2 s for 12 chunks on 2 workers and held at most 91.8 MiB in one process;
    nothing went wrong, and nothing needs to change."
    """
    said = f"'{shorten(name, 120)}' {_ENDS[status]} {time}"
    said += f" {'for' if status in ('done', 'running') else 'with'} {work}" if work else ""
    said += f" and held at most {memory} in one process" if memory else ""
    wrong = [finding.claim.rstrip(".") for finding in findings[:1]] or list(problems)
    change = findings[0].advice if findings else advice
    if not wrong and status == "done":
        return f"{said}; nothing went wrong, and nothing needs to change."
    said += "".join(f"; {problem}" for problem in wrong)
    return f"{said}; what to do: {change.rstrip('.')}." if change else f"{said}."
