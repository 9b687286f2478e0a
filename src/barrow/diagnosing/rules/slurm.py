"""What a queue does to jobs: read from what barrow and SLURM have said about them."""

import re
from collections.abc import Iterator

from barrow.diagnosing.facts import Facts
from barrow.model.finding import Finding, Severity
from barrow.units import format_count


def _said(facts: Facts) -> list[str]:
    events = facts.happened("job", "waiting", "lost", "failed")["message"]
    return [str(text) for text in events] + [str(text) for text in facts.log_messages]


def _find(facts: Facts, pattern: str) -> list[str]:
    return [text for text in _said(facts) if re.search(pattern, text)]


def pending(facts: Facts) -> Iterator[Finding]:
    """SLM01: jobs wait in the queue."""
    if found := _find(facts, r"\bPENDING\b|jobs? (is|are) pending|waits? in the queue"):
        yield _tell(
            facts,
            "SLM01",
            "note",
            f"{format_count(len(found), 'time')} jobs waited in the queue of SLURM.",
            found,
            "Ask for less (fewer cores, less memory, a shorter walltime=) or for another "
            "partition=; sinfo and squeue --start say when there is room.",
        )


def rejected(facts: Facts) -> Iterator[Finding]:
    """SLM02: SLURM does not take a job."""
    if found := _find(facts, r"SLURM rejected|sbatch: error|Batch job submission failed"):
        yield _tell(
            facts,
            "SLM02",
            "failure",
            "SLURM rejected the jobs.",
            found,
            "Correct what SLURM complains about: partition=, walltime=, memory=, account.",
        )


def out_of_time(facts: Facts) -> Iterator[Finding]:
    """SLM03: a job was ended because its time was over."""
    if found := _find(facts, r"ran out of its walltime|DUE TO TIME LIMIT|\bTIMEOUT\b"):
        yield _tell(
            facts,
            "SLM03",
            "warning",
            f"{format_count(len(found), 'job')} of SLURM ran out of time.",
            found,
            "Ask for a longer walltime=; barrow takes up what was left.",
        )


def out_of_memory(facts: Facts) -> Iterator[Finding]:
    """SLM04: SLURM killed a job for its memory."""
    pattern = r"used more than its memory|OUT_OF_MEMORY|oom[-_]kill|Exceeded job memory limit"
    if found := _find(facts, pattern):
        yield _tell(
            facts,
            "SLM04",
            "warning",
            f"SLURM killed {format_count(len(found), 'job')} for want of memory.",
            found,
            "Ask for more memory for each job (memory=), or let chunks be smaller.",
        )


def _tell(
    facts: Facts, code: str, severity: Severity, claim: str, found: list[str], advice: str
) -> Finding:
    is_fatal = facts.run.get("status") == "failed" and severity == "warning"
    lines = tuple(text.strip().splitlines()[0][:200] for text in found[:3])
    return Finding(code, "failure" if is_fatal else severity, claim, lines, advice)
