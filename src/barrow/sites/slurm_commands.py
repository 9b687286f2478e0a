"""The few commands of SLURM that are needed, run without blocking."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barrow.errors import ClusterError
from barrow.sites.jobs import EndedJob, QueuedJob, parse_accounted, parse_ended, parse_queue

COMMAND_SECONDS = 30.0


class Answer(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str


class Slurm:
    """The commands of SLURM, run without blocking.

    Parameters
    ----------
    environment
        Environment for the commands. If this process is itself in a job, what SLURM
        told that job must not be taken for wishes about others.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = clean_environment(environment)

    async def submit(self, script: str) -> int:
        """Hand in a job and return its number."""
        answer = await self._run("sbatch", "--parsable", text=script)
        number = answer.out.strip().partition(";")[0]
        if answer.code or not number.isdigit():
            said = " ".join(answer.err.replace("sbatch: error:", "").split())
            raise ClusterError(f"SLURM rejected the job: {said or answer.out.strip()}")
        return int(number)

    async def list_jobs(self, name: str) -> dict[int, QueuedJob] | None:
        """Return the jobs of a name that are in the queue; None if SLURM does not answer."""
        answer = await self._run("squeue", "--noheader", f"--name={name}", "--format=%A|%T|%r|%L")
        return None if answer.code else parse_queue(answer.out)

    async def find_end(self, job: int) -> EndedJob:
        """Return how a job ended."""
        answer = await self._run("scontrol", "show", "job", "--oneliner", str(job))
        if not answer.code and "JobState=" in answer.out:
            return parse_ended(answer.out)
        columns = "--format=State,ExitCode"
        answer = await self._run("sacct", "-n", "-X", "--parsable2", "-j", str(job), columns)
        return parse_accounted("" if answer.code else answer.out)

    async def cancel(self, jobs: Sequence[int]) -> None:
        """Cancel jobs; those that have ended are no mistake."""
        if jobs:
            await self._run("scancel", "--quiet", *map(str, jobs))

    async def signal(self, job: int, name: str) -> None:
        """Send a signal to the worker of a job."""
        await self._run("scancel", "--quiet", "--batch", f"--signal={name}", str(job))

    async def _run(self, *command: str, text: str = "") -> Answer:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
                # Ctrl-C is for the client.
                start_new_session=True,
            )
        except OSError as error:
            return Answer(127, "", str(error))
        try:
            out, err = await asyncio.wait_for(process.communicate(text.encode()), COMMAND_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
            return Answer(124, "", f"{command[0]} gave no answer within {COMMAND_SECONDS:.0f} s")
        return Answer(process.returncode or 0, out.decode(), err.decode())


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what SLURM told the job in which this process runs.

    Examples
    --------
    >>> clean_environment({"SLURM_CONF": "/etc/slurm.conf", "SLURM_MEM_PER_CPU": "512"})
    {'SLURM_CONF': '/etc/slurm.conf'}
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("SLURM_") or name in ("SLURM_CONF", "SLURM_CLUSTERS")
    }
