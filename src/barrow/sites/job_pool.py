"""Keep the workers of a SLURM cluster running, for a scheduler in this process.

Each worker is a job. A supervisor looks at the queue, says why a job was lost, and
asks for another one, within a bound. Importing this module imports Dask.
"""

import asyncio
import json
import pickle
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from distributed.core import Status
from distributed.deploy.cluster import Cluster as DaskCluster

from barrow.errors import ClusterError
from barrow.model.site import JOB_TOPIC, Offer
from barrow.sites.hosted import HostedCluster
from barrow.sites.job_lives import Job, choose_margin, count_most_lost
from barrow.sites.jobs import JobRequest, explain_end, read_log, write_script
from barrow.sites.security import Credentials
from barrow.sites.slurm_commands import Slurm
from barrow.sites.waiting import JobState, describe_queue
from barrow.units import format_count, format_seconds

MOST_HANDOVERS = 1000
AT_ONCE = 8
"""Commands that are run side by side."""
QUICK_PAUSE_SECONDS = 0.5
LONG_PAUSE_SECONDS = 10.0
"""How often the queue is looked at when something is going on, and when all is well."""
LINGER_SECONDS = 15.0
"""A job without a worker that does not end by then is cancelled."""
CLOSE_SECONDS = 8.0
USUAL_START_SECONDS = 10.0
"""Until a job has a worker, as long as none has come."""
WAITING_SECONDS = 2.0
"""A job that is pending for less is not worth a word in a record."""
MOST_NEWS = 1000
DEATH_SECONDS = 30.0
"""A worker that does not find its scheduler for so long ends its job."""


class JobPool(HostedCluster):
    """A scheduler in this process and workers in jobs.

    Parameters
    ----------
    request
        What each job asks for.
    slurm
        The commands.
    jobs
        How many jobs there should be.
    host
        Address of this machine that the jobs can reach.
    environment
        Variables to set in each job.
    pythonpath
        What programs started by a task find in their environment.
    timeout
        Seconds after which tasks that wait without any worker fail.
    most_jobs
        How many there can be.
    death_seconds
        How long a worker that does not find its scheduler waits before its job ends.
    is_quiet
        Whether nothing is said while workers are waited for.
    resources
        What each job has for tasks that ask for it.
    """

    is_local = False

    def __init__(
        self,
        request: JobRequest,
        slurm: Slurm,
        jobs: int,
        *,
        host: str,
        credentials: Credentials,
        environment: Mapping[str, str],
        pythonpath: str | None,
        timeout: float,
        most_jobs: int,
        death_seconds: float = DEATH_SECONDS,
        is_quiet: bool = False,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        self.failures = []
        self.losses: list[str] = []
        """Why jobs were lost, a text for each."""
        self.news: deque[str] = deque(maxlen=MOST_NEWS)
        """What happened to jobs, until somebody takes it."""
        self.wanted = jobs
        self.is_quiet = is_quiet
        self._request = request
        self._slurm = slurm
        self._environment = environment
        self._timeout = timeout
        self._options = {
            "is_job": True,
            "nthreads": request.cores,
            "memory_limit": request.memory_bytes,
            "credentials": str(request.folder),
            "dashboard": False,
            "resources": dict(resources or {}),
            "death_timeout": death_seconds,
            "hand_over_seconds": 0.8 * choose_margin(request.walltime_seconds),
            "pythonpath": pythonpath,
        }
        self._jobs: dict[int, Job] = {}
        self._starts: deque[float] = deque(maxlen=9)
        self._count = self._n_lost = self._n_failed = self._n_handed_over = 0
        self._alone_since: float | None = None
        self._queue_said = ""
        super().__init__(
            host=host,
            scratch=str(request.folder),
            credentials=credentials,
            offer=Offer(request.cores, request.memory_bytes, resources=dict(resources or {})),
            most_workers=most_jobs,
        )
        try:
            self.sync(self._begin)
        except BaseException:
            self.close(timeout=CLOSE_SECONDS)
            raise

    @property
    def logs(self) -> list[Path]:
        """What jobs have written, those that are lost as well."""
        return self._request.list_logs()

    def scale(self, n: int = 0, memory: Any = None, cores: Any = None) -> Any:
        """Ask for this many jobs; what went wrong before is forgotten."""
        del memory, cores
        self.failures.clear()
        self._n_lost = self._n_failed = 0
        self.change_number(n)

    def change_number(self, n: int) -> None:
        """Have so many jobs; those that have something to do are the last to go."""
        self.wanted = n
        self.loop.add_callback(self._changed.set)  # type: ignore[union-attr]

    @property
    def start_seconds(self) -> float:  # type: ignore[override]
        """Until a job that is asked for has a worker: as with others, or longer by now."""
        now = time.monotonic()
        waiting = (
            now - job.asked_seconds
            for job in list(self._jobs.values())
            if job.is_live and not job.has_come
        )
        return max(median(self._starts or [USUAL_START_SECONDS]), *waiting, 0.0)

    def describe_queue(self) -> str:
        """Return in a few words what the queue says about jobs without a worker."""
        waiting = [job for job in list(self._jobs.values()) if job.is_live and not job.has_come]
        return describe_queue(JobState(job.state, job.reason) for job in waiting)

    async def _begin(self) -> None:
        self._changed = asyncio.Event()
        self._supervisor: asyncio.Task[None] | None = None
        # One first: if it is rejected, the others would be as well.
        await self._submit()
        self._supervisor = asyncio.create_task(self._supervise())

    async def _submit(self) -> None:
        self._count += 1
        name = str(self._count)
        options = json.dumps({**self._options, "name": name})
        scheduler: Any = self.scheduler
        command = [sys.executable, "-P", "-m", "barrow.sites.worker", scheduler.address, options]
        number = await self._slurm.submit(write_script(self._request, command, self._environment))
        self._jobs[number] = Job(number, name)

    async def _supervise(self) -> None:
        while True:
            await self._look()
            try:
                await asyncio.wait_for(self._changed.wait(), self._choose_pause())
            except TimeoutError:
                pass
            self._changed.clear()

    def _choose_pause(self) -> float:
        jobs = self._jobs.values()
        is_restless = any(job.is_leaving or not job.is_live or not job.has_come for job in jobs)
        if is_restless or self.failures:
            return QUICK_PAUSE_SECONDS
        margin = choose_margin(self._request.walltime_seconds)
        soonest = min((job.left_seconds - margin for job in jobs), default=inf)
        return max(QUICK_PAUSE_SECONDS, min(LONG_PAUSE_SECONDS, soonest))

    async def _look(self) -> None:
        """See what has become of the jobs, and do something about it."""
        queue = await self._slurm.list_jobs(self._request.name)
        if queue is not None:
            for job in list(self._jobs.values()):
                if job.id not in queue:
                    await self._note_end(job)
                    continue
                job.state, job.reason, job.left_seconds = queue[job.id]
                margin = choose_margin(self._request.walltime_seconds)
                if job.state == "RUNNING" and job.left_seconds < margin:
                    await self._hand_over(job)
            await self._cancel_lingering()
            await self._correct_number()
            self._tell_of_waiting()
        self._fail_tasks_that_wait()

    def _tell(self, text: str) -> None:
        """Let the record of whatever runs here know of something."""
        self.news.append(text)
        scheduler: Any = self.scheduler
        scheduler.log_event(JOB_TOPIC, text)

    def _tell_of_waiting(self) -> None:
        """Tell once of jobs that the queue keeps waiting, for each reason it gives."""
        now = time.monotonic()
        waiting = [
            JobState(job.state, job.reason)
            for job in self._jobs.values()
            if job.state == "PENDING" and now - job.asked_seconds > WAITING_SECONDS
        ]
        said = describe_queue(waiting)
        if said and said != self._queue_said:
            self._tell(f"The queue says: {said}.")
        self._queue_said = said

    async def _note_end(self, job: Job) -> None:
        del self._jobs[job.id]
        ended = await self._slurm.find_end(job.id)
        if job.is_leaving and not ended.code and ended.signal in (0, signal.SIGTERM):
            return
        log = read_log(self._request.log_path(job.id))
        memory_bytes = self._request.memory_bytes
        self.losses.append(explain_end(job.id, ended, log, memory_bytes=memory_bytes))
        self._tell(self.losses[-1])
        self._n_lost += 1
        self._n_failed = 0 if job.has_come else self._n_failed + 1
        if self._n_failed >= max(3, self.wanted) or self._n_lost > count_most_lost(self.wanted):
            self._give_up(f"{format_count(self._n_lost, 'job')} ended too soon.")

    async def _hand_over(self, job: Job) -> None:
        """Let a job end whose time is nearly over, and have another in its place."""
        if job.is_leaving or not job.has_come:
            return
        self._n_handed_over += 1
        if self._n_handed_over > MOST_HANDOVERS:
            self._give_up(f"Jobs were replaced {MOST_HANDOVERS} times at the end of their time.")
            return
        job.is_leaving = True
        await self._slurm.signal(job.id, "USR1")

    async def _cancel_lingering(self) -> None:
        now = time.monotonic()
        lingering = [
            job.id
            for job in self._jobs.values()
            if job.lost_seconds is not None and now - job.lost_seconds > LINGER_SECONDS
        ]
        await self._slurm.cancel(lingering)

    async def _correct_number(self) -> None:
        live = [job for job in self._jobs.values() if job.is_live]
        missing = self.wanted - len(live)
        # Of some it is not known yet why they are lost.
        n_lost = self._n_lost + sum(job.lost_seconds is not None for job in self._jobs.values())
        may_submit = not self.failures and n_lost <= count_most_lost(self.wanted)
        if missing > 0 and may_submit:
            # Few at a time: what the first ones meet decides about the others.
            answers = await asyncio.gather(
                *(self._submit() for _ in range(min(missing, AT_ONCE))), return_exceptions=True
            )
            for answer in answers:
                if isinstance(answer, ClusterError):
                    self._give_up(str(answer))
                    break
            if missing > AT_ONCE:
                self._changed.set()
        elif missing < 0:
            # First those whose worker has not come yet, last those that have something to do.
            busy = self._busy()
            order = sorted(live, key=lambda job: (job.has_come, job.worker in busy, -job.id))
            surplus = order[:-missing]
            for job in surplus:
                job.is_leaving = True
            waiting = [job.id for job in surplus if not job.has_come]
            await self._slurm.cancel(waiting)
            for job in surplus:
                if job.has_come:
                    await self._slurm.signal(job.id, "USR1")

    def _give_up(self, what: str) -> None:
        if not self.failures:
            last = self.losses[-1:]
            self.failures.append("\n".join([f"{what} No more jobs are asked for.", *last]))
            self._tell(self.failures[-1])

    def _fail_tasks_that_wait(self) -> None:
        """End the waiting of tasks for which no worker will come, or has not come for long."""
        scheduler: Any = self.scheduler
        waiting = [*scheduler.unrunnable, *scheduler.queued]
        if scheduler.workers or not waiting:
            self._alone_since = None
            return
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        is_over = bool(self.failures) and not any(job.is_live for job in self._jobs.values())
        if not is_over and now - self._alone_since < self._timeout:
            return
        error = pickle.dumps(ClusterError(self._explain_loneliness(now - self._alone_since)))
        stimulus = f"barrow-no-workers-{time.time()}"
        recommendations: dict[Any, Any] = {}
        for task in waiting:
            made = scheduler.transition(
                task.key, "erred", exception=error, cause=task.key, stimulus_id=stimulus
            )
            recommendations.update(made)
        scheduler.transitions(recommendations, stimulus_id=stimulus)

    def _explain_loneliness(self, seconds: float) -> str:
        if self.failures:
            return "\n".join(["All workers are gone.", *self.failures])
        queue = self.describe_queue() or "there is no job of this cluster"
        lost = self.losses[-1:]
        return "\n".join(
            [
                f"There has been no worker for {format_seconds(seconds)}. The queue says: {queue}.",
                *lost,
                "Wait longer with timeout=..., or ask for less memory=, cores= or walltime=.",
            ]
        )

    def _update_worker_status(self, op: str, msg: Any) -> None:
        if op == "add":
            for worker in msg["workers"].values():
                for job in self._jobs.values():
                    if job.worker == worker["name"] and not job.has_come:
                        job.has_come = True
                        self._starts.append(time.monotonic() - job.asked_seconds)
                        self._n_failed = 0
        else:
            gone = self.scheduler_info["workers"].get(msg, {}).get("name")
            for job in self._jobs.values():
                if job.worker == gone and not job.is_leaving:
                    job.lost_seconds = time.monotonic()
        self._changed.set()
        # Not the method of SpecCluster: it knows nothing of these workers.
        DaskCluster._update_worker_status(self, op, msg)

    async def _close(self) -> None:
        if self.status == Status.running and hasattr(self, "_changed"):
            if self._supervisor is not None:
                self._supervisor.cancel()
                await asyncio.wait({self._supervisor})
            # Jobs that wait go first, or they would start in the room the others leave.
            await self._slurm.cancel([job.id for job in self._jobs.values() if not job.has_come])
            await self._slurm.cancel(list(self._jobs))
            # Before the scheduler goes, so that it hears their goodbye.
            await self._wait_until_gone()
        await super()._close()

    async def _wait_until_gone(self) -> None:
        last = time.monotonic() + CLOSE_SECONDS
        while self._jobs and time.monotonic() < last:
            queue = await self._slurm.list_jobs(self._request.name)
            if queue is not None and not queue:
                self._jobs.clear()
                return
            await asyncio.sleep(0.2)
