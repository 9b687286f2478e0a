"""The jobs of a SLURM cluster: their script, their state, and why they ended.

Text in, text out; the commands are run in :mod:`barrow.sites.slurm_commands`.
"""

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import NamedTuple

from barrow.sites.partitions import MEBIBYTE, format_duration, parse_duration
from barrow.units import format_bytes

LOG_BYTES = 20_000
WORDS = 300
"""Characters of a log that are shown."""
INTERRUPTED_CODE = 75
"""Exit code of a worker that had to leave in the midst of a task."""

GPU = "GPU"
"""What tasks call what SLURM calls gpu."""

CAUSES = {
    "BOOT_FAIL": "its node could not be started",
    "CANCELLED": "it was cancelled",
    "COMPLETED": "its worker ended by itself",
    "DEADLINE": "its deadline passed",
    "FAILED": "its worker failed",
    "NODE_FAIL": "its node failed",
    "OUT_OF_MEMORY": "it used more than its memory",
    "PREEMPTED": "it had to make room for another job",
    "TIMEOUT": "it ran out of its walltime",
}
ADVICE = {
    "memory": "Ask for more memory=.",
    "TIMEOUT": "Ask for a longer walltime=.",
}


@dataclass(frozen=True)
class JobRequest:
    """What is asked of SLURM for each worker."""

    name: str
    """The same for all jobs of a cluster, and for no others."""
    partition: str
    cores: int
    memory_bytes: int
    folder: Path
    """Where jobs write what they say."""
    walltime_seconds: float | None = None
    account: str | None = None
    options: tuple[str, ...] = ()
    """Further options of ``sbatch``, such as ``"--qos=long"``."""
    setup: tuple[str, ...] = ()
    """Lines of shell before the worker starts, such as ``"module load python"``."""

    def log_path(self, job: int) -> Path:
        """Return where a job writes what it says."""
        return self.folder / f"job-{job}.log"

    def list_logs(self) -> list[Path]:
        """Return what jobs have written, those that are lost as well."""
        return sorted(self.folder.glob("job-*.log"))


class QueuedJob(NamedTuple):
    """A job that SLURM knows and that has not ended."""

    state: str
    reason: str
    seconds_left: float


class EndedJob(NamedTuple):
    """How a job ended."""

    state: str
    reason: str = ""
    code: int = 0
    signal: int = 0


def write_script(
    request: JobRequest, command: Sequence[str], environment: Mapping[str, str]
) -> str:
    """Return the script of a job that runs one worker.

    Examples
    --------
    >>> request = JobRequest("barrow-1", "8GB", 1, 2 * 10**9, Path("/home/ada/run"), 5400)
    >>> print(write_script(request, ["python", "-c", "print(1)"], {"OMP_NUM_THREADS": "1"}))
    #!/bin/bash
    #SBATCH --job-name=barrow-1
    #SBATCH --partition=8GB
    #SBATCH --nodes=1
    #SBATCH --ntasks=1
    #SBATCH --cpus-per-task=1
    #SBATCH --mem=1908M
    #SBATCH --no-requeue
    #SBATCH --open-mode=append
    #SBATCH --output=/home/ada/run/job-%j.log
    #SBATCH --time=0-01:30:00
    export OMP_NUM_THREADS=1
    exec python -c 'print(1)'
    <BLANKLINE>
    """
    options = [
        f"--job-name={request.name}",
        f"--partition={request.partition}",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={request.cores}",
        f"--mem={ceil(request.memory_bytes / MEBIBYTE)}M",
        # A job that was lost is replaced from here, not started a second time by SLURM.
        "--no-requeue",
        "--open-mode=append",
        f"--output={_quote_path(request.folder / 'job-%j.log')}",
    ]
    if request.walltime_seconds is not None:
        options.append(f"--time={format_duration(request.walltime_seconds)}")
    if request.account is not None:
        options.append(f"--account={request.account}")
    lines = ["#!/bin/bash", *(f"#SBATCH {option}" for option in (*options, *request.options))]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    # In place of the shell, so that signals to the job reach the worker.
    return "\n".join([*lines, *request.setup, f"exec {shlex.join(command)}", ""])


def find_resources(options: Iterable[str]) -> dict[str, float]:
    """Return what a job has for tasks, from the options with which SLURM is asked for it.

    Examples
    --------
    >>> find_resources(["--gres=gpu:a100:2,shard:4", "--qos=long", "--licenses=matlab"])
    {'GPU': 2.0, 'shard': 4.0, 'matlab': 1.0}
    >>> find_resources(["--gpus-per-task 1"])
    {'GPU': 1.0}
    """
    found: dict[str, float] = {}
    for option in options:
        name, _, value = option.replace("=", " ", 1).partition(" ")
        is_count_of_gpus = name in ("-G", "--gpus", "--gpus-per-node", "--gpus-per-task")
        if not is_count_of_gpus and name not in ("--gres", "-L", "--licenses"):
            continue
        for part in value.strip().split(","):
            kind, *rest = part.split(":")
            amount = rest[-1] if rest else kind if is_count_of_gpus else "1"
            if amount.isdigit():
                is_gpu = is_count_of_gpus or kind == "gpu"
                found[GPU if is_gpu else kind] = float(amount)
    return found


def parse_queue(text: str) -> dict[int, QueuedJob]:
    """Return the jobs in an answer of ``squeue``.

    Examples
    --------
    >>> parse_queue("7|PENDING|Resources|1:00:00")[7].reason
    'Resources'
    """
    jobs = {}
    for line in text.splitlines():
        number, *fields = line.strip().split("|")
        if number.isdigit() and len(fields) == 3:
            state, reason, left = fields
            jobs[int(number)] = QueuedJob(state, reason.strip("()"), parse_duration_left(left))
    return jobs


def parse_duration_left(text: str) -> float:
    """Return the seconds that ``squeue`` says a job has left.

    Examples
    --------
    >>> [parse_duration_left(text) for text in ("0:42", "INVALID", "UNLIMITED")]
    [42.0, 0.0, inf]
    """
    return 0.0 if text.startswith("INVALID") else parse_duration(text)


def parse_ended(text: str) -> EndedJob:
    """Return how a job ended, from an answer of ``scontrol show job --oneliner``.

    Examples
    --------
    >>> parse_ended("JobId=2 JobState=FAILED Reason=NonZeroExitCode ExitCode=0:9 RunTime=1")
    EndedJob(state='FAILED', reason='NonZeroExitCode', code=0, signal=9)
    """
    found = dict(re.findall(r"(\w+)=(\S*)", text))
    code, _, signal = found.get("ExitCode", "0:0").partition(":")
    reason = found.get("Reason", "None")
    return EndedJob(
        found.get("JobState", "UNKNOWN"),
        "" if reason == "None" else reason,
        int(code) if code.isdigit() else 0,
        int(signal) if signal.isdigit() else 0,
    )


def parse_accounted(text: str) -> EndedJob:
    """Return how a job ended, from an answer of ``sacct --parsable2``.

    Examples
    --------
    >>> parse_accounted("CANCELLED by 1000|0:15")
    EndedJob(state='CANCELLED', reason='by 1000', code=0, signal=15)
    """
    state, _, exit_code = text.partition("\n")[0].partition("|")
    word, _, rest = state.strip().partition(" ")
    code, _, signal = exit_code.strip().partition(":")
    return EndedJob(
        word or "UNKNOWN",
        rest,
        int(code) if code.isdigit() else 0,
        int(signal) if signal.isdigit() else 0,
    )


def explain_end(job: int, ended: EndedJob, log: str, *, memory_bytes: int) -> str:
    """Return in a sentence or two why a job ended, with SLURM's own words.

    Examples
    --------
    >>> words = "slurmstepd: error: Job 7 exceeded memory limit (2 > 1), being killed"
    >>> print(explain_end(7, EndedJob("FAILED", signal=9), words, memory_bytes=2**30))
    Job 7 ended because it used more than its memory of 1.00 GiB (SLURM says FAILED, signal 9).
    It wrote: slurmstepd: error: Job 7 exceeded memory limit (2 > 1), being killed
    Ask for more memory=.
    """
    cause = CAUSES.get(ended.state, "SLURM does not know it any more")
    advice = ADVICE.get(ended.state, "")
    is_too_large = re.search(r"memory limit|oom[-_ ]?kill|out of memory", log, re.IGNORECASE)
    if is_too_large or ended.state == "OUT_OF_MEMORY":
        cause = f"it used more than its memory of {format_bytes(memory_bytes)}"
        advice = ADVICE["memory"]
    if ended.code == INTERRUPTED_CODE:
        cause = "its walltime was over before its task was done"
        advice = "Ask for a longer walltime=, or let chunks be smaller with less memory=."
    said = [ended.state]
    if ended.reason:
        said.append(ended.reason)
    if ended.code:
        said.append(f"exit code {ended.code}")
    if ended.signal:
        said.append(f"signal {ended.signal}")
    lines = [f"Job {job} ended because {cause} (SLURM says {', '.join(said)})."]
    if words := find_words(log):
        lines.append(f"It wrote: {words}")
    return "\n".join([*lines, advice] if advice else lines)


def find_words(log: str) -> str:
    """Return the line of a log that is most likely to say what was wrong.

    Examples
    --------
    >>> find_words("Traceback (most recent call last):\\n  File ...\\nImportError: no dask\\n")
    'ImportError: no dask'
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|exceeded|not found|denied", line, re.I)]
    chosen = (telling or lines)[-1:]
    return chosen[0][:WORDS] if chosen else ""


def read_log(path: Path) -> str:
    """Return the end of what a job wrote; nothing if it wrote nothing or cannot be reached."""
    with suppress(OSError), open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_BYTES))
        return file.read().decode(errors="replace")
    return ""


def _quote_path(path: Path) -> str:
    return re.sub(r"([\s\\'\"])", r"\\\1", str(path))
