"""Finish a run that was interrupted, without the script that began it.

The call is made again: planned for where it runs now, with the chunks as they were.
"""

import json
from os import PathLike
from typing import Any

from barrow.composing import check_options, find_site
from barrow.errors import OutputError
from barrow.model.applied import Apply
from barrow.model.plan import Plan
from barrow.model.run import Run
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.pipelines import plan_pipeline, run_pipeline
from barrow.recording.record import read_skipped
from barrow.running import stores
from barrow.running.folders import RunFolder, find_run
from barrow.running.saved_call import opened_call


def resume_run(
    folder: str | PathLike[str], *, memory: str | int | None, cluster: Any, quiet: bool
) -> Run:
    """Return a run, finished now if it was not."""
    found = find_run(folder)
    if found.is_finished:
        return _open_run(found)
    if found.final is None:
        raise OutputError(
            f"The run in {found.root} was not finished, and its result had no place of its own "
            "(to=...): what it had done cannot be taken up. Make its call again."
        )
    with opened_call(found) as call:
        if cluster is None and not call.options["is_parallel"]:
            cluster = False
        options = {
            "to": found.final,
            "quiet": quiet,
            "memory": call.options["memory"] if memory is None else memory,
            "cluster": cluster,
            "on_error": call.options["on_error"],
            "may_resize": call.options["may_resize"],
        }
        check_options(options)
        steps, inputs = list_steps(call.origin)
        with find_site(cluster) as (site, handle):
            plan = plan_pipeline(steps, inputs, site, options)
            return run_pipeline(plan, site, handle, call)


def list_steps(origin: Source) -> tuple[list[Step], tuple[Source, ...]]:
    """Return the steps of a chain, the first one first, and what that one reads.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> steps = [barrow.Step(np.sqrt), barrow.Step(np.negative)]
    >>> steps, (source,) = list_steps(barrow.plan(steps, np.ones((4, 5))).target)
    >>> [step.name for step in steps], source.name
    (['sqrt', 'negative'], 'array')
    """
    steps: list[Step] = []
    inputs: tuple[Source, ...] = (origin,)
    while len(inputs) == 1 and isinstance(inputs[0].read, Apply):
        steps.insert(0, inputs[0].read.step)
        inputs = inputs[0].read.inputs
    return steps, inputs


def _open_run(folder: RunFolder) -> Run:
    metrics = json.loads(folder.metrics_path.read_text())
    result = stores.open_finished(folder.store) if folder.store.exists() else None
    skipped = read_skipped(folder.record_path)
    return Run(result, Plan.load(folder.plan_path), metrics, folder.root, skipped)
