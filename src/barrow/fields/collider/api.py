"""Run a processor over the events of many files."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any

from barrow.errors import SkippedWarning
from barrow.fields.collider.analysis import OnError
from barrow.fields.collider.columns import Schema
from barrow.fields.collider.jobs import Job, Settings
from barrow.fields.collider.kept import Kept
from barrow.fields.collider.metrics import summarise
from barrow.fields.collider.outputs import find_output, save_output
from barrow.fields.collider.plans import Planned, plan_job
from barrow.fields.collider.runs import Run
from barrow.fields.collider.skips import Skip, join_skips
from barrow.fields.collider.tally import Merge, Tally, finish
from barrow.model.run import Run as EngineRun
from barrow.units import format_count


def run(
    processor: Any,
    fileset: Any,
    *,
    treename: str = "Events",
    schema: Schema | type = "nanoaod",
    on_error: OnError = "stop",
    to: str | PathLike[str] | None = None,
    chunksize: int | None = None,
    maxchunks: int | None = None,
    memory: str | int | None = None,
    cluster: Any = None,
    resume: bool = True,
    quiet: bool = False,
) -> Run:
    """Apply a processor to the events of many files and add up what it returns.

    Parameters
    ----------
    processor
        An object with ``process(events)`` and perhaps ``postprocess(output)``, as for
        coffea; its class; or a function of the events.
    fileset
        A path or glob, a list, a dictionary of either by dataset, coffea's dictionary with
        ``files`` and ``metadata``, or the path of a JSON file with one of these.
    schema
        ``"nanoaod"`` for collections (``events.Muon.pt``), ``"flat"`` for columns as they
        are (``events.Muon_pt``), or a schema class of coffea for its own events.
    on_error
        ``"stop"`` ends the run with the error. ``"skip"`` leaves out just the events that
        cannot be read or processed; ``"skip-file"`` leaves out their whole file. What was
        left out is in ``run.skipped``.
    to
        File for the pickled output. The same call again returns it, and takes up an
        interrupted run; a changed processor begins anew.
    chunksize
        Events in one call of the processor at most; by default measured.
    maxchunks
        Process no more than so many chunks of each dataset: to try something out.
    memory, cluster, quiet
        As for :func:`barrow.map`.
    resume
        Whether to use what an earlier, same call has left at ``to``.
    """
    began = time.perf_counter()
    settings = Settings(schema, on_error, chunksize, maxchunks)
    job = Job.of(processor, fileset, treename, settings)
    options = {
        "quiet": quiet,
        "memory": memory,
        "cluster": cluster,
        # Events are left out where they are read; here only what a worker died of is.
        "on_error": "stop" if on_error == "stop" else "skip",
    }
    done = _do(job, options, began) if to is None else _do_once(job, options, began, to, resume)
    if done.skipped:
        _warn(done.skipped)
    return done


def partial_output(to: str | PathLike[str]) -> Any:
    """Return the sum of what a run that is not finished has done so far, as a tally.

    Its ``value`` is what the processor returned, before ``postprocess``. The run may be going
    on meanwhile.
    """
    return Kept.beside(Path(to)).total(Merge())


def _do_once(
    job: Job, options: Mapping[str, Any], began: float, to: str | PathLike[str], resume: bool
) -> Run:
    """Return the run whose output is to be in a file: found there, taken up, or begun."""
    place = Path(to)
    key = job.key() if resume else None
    if (found := _find(place, key)) is not None:
        return found
    with Kept.held(place) as kept:
        # Whoever was here until now may have made it.
        if (found := _find(place, key)) is not None:
            return found
        done = _do(job, options, began, kept, key)
        skipped = [asdict(skip) for skip in done.skipped]
        about = {"key": key, "metrics": done.metrics, "skipped": skipped}
        save_output(place, done.output, about)
        kept.forget()
    return done


def _find(place: Path, key: str | None) -> Run | None:
    found = find_output(place, key)
    if found is None:
        return None
    output, about = found
    return Run(output, about["metrics"], tuple(Skip(**skip) for skip in about["skipped"]))


def _do(
    job: Job,
    options: Mapping[str, Any],
    began: float,
    kept: Kept | None = None,
    key: str | None = None,
) -> Run:
    planned = plan_job(job, options, kept, key)
    tally, ran = _execute(job, planned, options["cluster"])
    output = job.finish(tally.value)
    metrics = summarise(
        tally,
        job.files,
        chunksize=job.settings.chunksize,
        wall_seconds=time.perf_counter() - began,
        ran=ran.metrics if ran else {},
    )
    skipped = join_skips(tally.skips)
    return Run(output, {"processor": job.name, **metrics}, skipped, ran, job.find_loop)


def _execute(job: Job, planned: Planned, cluster: Any) -> tuple[Tally, EngineRun | None]:
    """Return the sum, and the run that made it."""
    analysis, plan = planned
    if plan is None:
        return Tally(skips=job.missing), None
    from barrow.api import run as run_plan

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedWarning)  # said once, for events
        ran = run_plan(plan, cluster=cluster)
    tally: Tally = ran.result
    lost = [
        Skip(entry.dataset, entry.path, span.start, span.stop, skip.reason, skip.attempts)
        for skip in ran.skipped
        for number in range(*skip.ranges[0])
        for span in analysis.pieces[number]
        for entry in (job.files[span.file].entry,)
    ]
    tally = finish(_without_torn_files(job, tally, lost) if lost else tally)
    return replace(tally, skips=(*job.missing, *tally.skips, *lost)), ran


def _without_torn_files(job: Job, tally: Tally, lost: Sequence[Skip]) -> Tally:
    """Return a tally in which files with lost parts have no part, where they go as a whole."""
    paths = {skip.path for skip in lost}
    torn = {n: p for n, p in tally.portions.items() if job.files[n].entry.path in paths}
    marked = {n: replace(p, skips=(*p.skips, *lost[:1])) for n, p in torn.items()}
    return replace(tally, portions={**tally.portions, **marked})


def _warn(skipped: Sequence[Skip]) -> None:
    warnings.warn(
        f"{format_count(len(skipped), 'part')} of the events could not be read or processed and "
        f"are not in the output. The first: {skipped[0]}\nAll are in .skipped.",
        SkippedWarning,
        stacklevel=3,
    )
