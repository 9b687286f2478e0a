"""Start the engine that a plan asks for, with all that it needs around it."""

import os
import uuid
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from barrow.model.plan import Plan
from barrow.pinning import library_threads
from barrow.planning.layout import worker_limit
from barrow.recording.offering import offer_page
from barrow.running.asking import Asking
from barrow.running.dask_engine import DaskEngine
from barrow.running.engines import Engine, InlineEngine, ThreadEngine
from barrow.running.lookout import Lookout
from barrow.running.task import Work
from barrow.running.unsticking import Unsticking
from barrow.sites.staffing import Rest
from barrow.steering import Course

LOG_BYTES = 10**6
"""Of what a job has written, its end is kept."""


def start_engine(
    plan: Plan, work: Work, course: Course, cluster: Any, root: Path, stack: ExitStack
) -> Engine:
    """Return the engine of a plan, ready to work.

    Parameters
    ----------
    course
        Told what happens to workers on the way.
    cluster
        A handle, when the engine is Dask.
    root
        Folder of the run.
    stack
        Ends, with the run, what was started for it.
    """
    if plan.engine == "inline":
        return InlineEngine(work)
    if plan.engine == "threads":
        stack.enter_context(library_threads(work.library_threads or 1))
        return ThreadEngine(work, plan.threads)
    if plan.engine == "processes":
        from barrow.sites.local import start_local

        limit = worker_limit(plan.budget_bytes, plan.threads)
        cluster = stack.enter_context(start_local(plan.workers, plan.threads, limit))
    offer_page(cluster.client, root, plan.seconds)
    stack.callback(lambda: course.on_jobs(cluster.take_news()))
    stack.callback(lambda: keep_logs(cluster.logs, root / "jobs"))
    key = f"{plan.name}-{uuid.uuid4().hex}"
    is_sized = plan.engine == "processes"
    stack.enter_context(cluster.hosting(key, plan.resources, in_each=is_sized))
    work = replace(work, neighbours=plan.threads)
    if plan.is_local:
        work = work.shared()
    # A worker that keeps so much from its tasks has no room for the next one.
    is_own = cluster.is_supervised and plan.is_local
    recycle = cluster.site().limit_bytes - plan.budget_bytes if is_own else 0

    def staff(there: int) -> None:
        """Have as many workers as what is left can use, where that was asked for."""
        rest = Rest(*course.left, plan.slots / plan.workers, plan.workers)
        course.on_workers(there, cluster.staff(key, rest))
        course.on_jobs(cluster.take_news())

    return DaskEngine(
        work,
        cluster.client,
        plan.slots,
        plan.name,
        key=key,
        asking=Asking(plan.budget_bytes, plan.slots / plan.workers, plan.resources),
        lookout=Lookout(
            cluster.client,
            on_wait=course.on_wait,
            on_look=staff,
            find_failures=lambda: cluster.failures,
        ),
        unsticking=Unsticking(
            cluster.client,
            course.on_stuck,
            act=bool(plan.options.get("act", True)),
            is_own=is_own,
        ),
        recycle_bytes=max(0, recycle),
        on_recycle=course.on_recycle,
    )


def keep_logs(logs: Iterable[Path], folder: Path) -> None:
    """Copy what jobs have written to the folder of a run: theirs goes when the cluster closes."""
    for log in logs:
        with suppress(OSError), log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_BYTES))
            if size:
                folder.mkdir(exist_ok=True)
                (folder / log.name).write_bytes(file.read())
