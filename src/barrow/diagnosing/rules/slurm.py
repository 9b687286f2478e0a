"""What a queue does to jobs: read from what barrow and SLURM have said about them."""

import re
from collections.abc import Iterator

from barrow.diagnosing.facts import Facts
from barrow.model.finding import Finding, Severity
from barrow.units import format_count

PENDING = r"\bPENDING\b|jobs? pending"
REJECTED = r"SLURM rejected|sbatch: error|Batch job submission failed"
OUT_OF_TIME = r"ran out of its walltime|its walltime was over|DUE TO TIME LIMIT|\bTIMEOUT\b"
OUT_OF_MEMORY = r"used more than its memory|OUT_OF_MEMORY|oom[-_]kill|Exceeded job memory limit"


def pending(facts: Facts) -> Iterator[Finding]:
    """SLM01: jobs wait in the queue."""
    if found := find_said(facts, PENDING):
        yield _tell(
            facts,
            "SLM01",
            "note",
            "Jobs waited in the queue of SLURM before they could begin.",
            found,
            "Ask for less (fewer cores, less memory, a shorter walltime=) or for another "
            "partition=; sinfo and squeue --start say when there is room.",
        )


def rejected(facts: Facts) -> Iterator[Finding]:
    """SLM02: SLURM does not take a job."""
    if found := find_said(facts, REJECTED):
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
    if found := find_said(facts, OUT_OF_TIME):
        yield _tell(
            facts,
            "SLM03",
            "warning",
            f"{_name_jobs(found)} ran out of walltime.",
            found,
            "Ask for a longer walltime=; barrow takes up what was left.",
        )


def out_of_memory(facts: Facts) -> Iterator[Finding]:
    """SLM04: SLURM killed a job for its memory."""
    if found := find_said(facts, OUT_OF_MEMORY):
        yield _tell(
            facts,
            "SLM04",
            "warning",
            f"{_name_jobs(found)} used more than its memory, and SLURM ended it.",
            found,
            "Ask for more memory for each job (memory=), or let chunks be smaller.",
        )


def find_said(facts: Facts, pattern: str) -> list[str]:
    """Return what was said of jobs, as far as it is about something."""
    events = facts.happened("job", "waiting", "lost", "failed")["message"]
    said = [*map(str, events), *facts.log_messages, str(facts.run.get("error") or "")]
    return [text for text in said if re.search(pattern, text)]


def _name_jobs(found: list[str]) -> str:
    """Return which jobs are spoken of; what is said twice of a job is said of one."""
    numbers = list(dict.fromkeys(re.findall(r"\b[Jj]ob (\d+)", "\n".join(found))))
    if not numbers:
        return "A job"
    others = f" and {format_count(len(numbers) - 1, 'other')}" if len(numbers) > 1 else ""
    return f"Job {numbers[0]}{others}"


def _tell(
    facts: Facts, code: str, severity: Severity, claim: str, found: list[str], advice: str
) -> Finding:
    is_fatal = facts.run.get("status") == "failed" and severity == "warning"
    lines = tuple(text.strip().splitlines()[0][:200] for text in found[:3])
    return Finding(code, "failure" if is_fatal else severity, claim, lines, advice)
