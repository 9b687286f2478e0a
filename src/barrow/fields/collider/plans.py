"""Plan a job: measure it, cut it into pieces, and say what they will take."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from barrow.composing import fenced, find_memory, find_site, fuse
from barrow.fields.collider.analysis import Analysis, Span
from barrow.fields.collider.cutting import Pace, cut_pieces, list_spans
from barrow.fields.collider.jobs import Job, Numbers
from barrow.fields.collider.kept import Begun, Kept
from barrow.fields.collider.measuring import measure
from barrow.fields.collider.tally import Tally
from barrow.model.cost import Cost
from barrow.model.plan import Plan
from barrow.model.site import Site
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.planning.planner import make_plan

# What a worker needs until it can read a file: awkward, uproot, vector.
IMPORT_SECONDS = 1.0
# Pieces that follow one another make one longer call: up to about this length it is known well.
FAMILIAR_SECONDS = 1.0
# About so much work is lost at most, and not seen yet, if what is done is kept.
KEEP_SECONDS = 10.0
# What coffea takes, where only the number of chunks is given.
USUAL_CHUNK = 100_000
UNKNOWN_PACE = Pace(1e-6)
# The output of a task may be as large as what it read.
BUDGET_SHARE = 0.25


class Planned(NamedTuple):
    """How a job is to be done."""

    analysis: Analysis
    plan: Plan | None
    """None if nothing is left to do."""


def plan_job(job: Job, options: Mapping[str, Any], kept: Kept | None, key: str | None) -> Planned:
    """Return how to do a job.

    Parameters
    ----------
    options
        As of a run: ``memory``, ``cluster``, ``quiet``, ``on_error``.
    kept
        Where what is done is kept for later.
    key
        What tells the job from all others; None if nothing is to be taken up again.
    """
    with find_site(options["cluster"]) as (site, _):
        earlier = kept.take_up(key) if kept is not None and key is not None else None
        cut = _take_up(job, *earlier) if earlier is not None else _cut(job, site, options)
        analysis = cut.analysis
        if not analysis.pieces:
            return Planned(analysis, None)
        plan = _make_plan(job, cut, site, options)
        chunk = cut.chunk or plan.chunks["piece"]
        if kept is not None and not cut.chunk:
            chunk = min(chunk, max(1, int(KEEP_SECONDS / max(1e-9, _piece_seconds(cut)))))
        plan = replace(plan, chunks={"piece": chunk})
        if kept is not None:
            if earlier is None:
                begun = Begun(analysis.pieces, chunk, analysis.columns)
                kept.begin(key or "", begun, analysis.known)
            analysis = replace(analysis, keep=kept)
            plan = replace(plan, target=_target(job, analysis))
        return Planned(analysis, plan)


class _Cut(NamedTuple):
    """A job in pieces."""

    analysis: Analysis
    pace: Pace
    chunk: int = 0
    """Pieces of one chunk; 0 to let the plan decide."""


def _take_up(job: Job, begun: Begun, known: Mapping[Span, Tally]) -> _Cut:
    """Return a job in the pieces in which it was begun."""
    analysis = replace(job.analysis, pieces=begun.pieces, known=known, columns=begun.columns)
    return _Cut(analysis, UNKNOWN_PACE, begun.chunk)


def _cut(job: Job, site: Site, options: Mapping[str, Any]) -> _Cut:
    """Return a job in pieces of the size that was asked for, or that measuring finds."""
    if job.settings.chunksize is not None or job.settings.maxchunks is not None:
        return _Cut(replace(job.analysis, pieces=_cut_as_asked(job)), UNKNOWN_PACE, 1)
    with fenced(job.name, site, options):
        analysis, pace = measure(job.analysis)
    memory = find_memory(site, options) or site.machine.available_bytes
    cores = 1 if options["cluster"] is False else max(1, site.machine.cores)
    pieces = cut_pieces(
        job.files,
        pace,
        cores=cores,
        known=analysis.known.keys(),
        budget_bytes=int(BUDGET_SHARE * memory / cores),
    )
    return _Cut(replace(analysis, pieces=pieces, call_events=pace.call_events), pace)


def _make_plan(job: Job, cut: _Cut, site: Site, options: Mapping[str, Any]) -> Plan:
    analysis, pace = cut.analysis, cut.pace
    count = len(analysis.pieces)
    seconds = _piece_seconds(cut)
    events = max((sum(span.events for span in piece) for piece in analysis.pieces), default=0)
    cores = site.machine.cores
    several = max(4, min(count, int(FAMILIAR_SECONDS / max(1e-9, seconds))))
    cost = Cost(
        points=((1, seconds), (several, several * seconds)),
        # Python holds its lock for most of the work.
        thread_slowdown=((1, float(cores)),),
        process_slowdown=((1, 1.0),),
        peak_per_item=pace.event_bytes * events,
        startup_seconds=IMPORT_SECONDS + pace.startup_seconds,
    )
    plan = make_plan(
        _target(job, analysis),
        cost=cost,
        site=site,
        memory_bytes=find_memory(site, options),
        wants_store=False,
        may_be_parallel=options["cluster"] is not False,
    )
    return replace(plan, options=dict(options))


def _piece_seconds(cut: _Cut) -> float:
    """Return what a piece takes on average, without what is already done."""
    pieces, known = cut.analysis.pieces, cut.analysis.known
    left = (span for piece in pieces for span in piece if span not in known)
    return sum(map(cut.pace.seconds, left)) / len(pieces)


def _target(job: Job, analysis: Analysis) -> Source:
    source = Source("events", {"piece": len(analysis.pieces)}, np.dtype("i8"), Numbers())
    return fuse(Step(analysis, job.name, combine=analysis.merge), [source])


def _cut_as_asked(job: Job) -> list[list[Span]]:
    """Return a piece for each chunk that was asked for."""
    maxchunks = job.settings.maxchunks
    counts: dict[str, int] = {}
    pieces = []
    for span in list_spans(job.files, job.settings.chunksize or USUAL_CHUNK):
        dataset = job.files[span.file].entry.dataset
        counts[dataset] = counts.get(dataset, 0) + 1
        if maxchunks is None or counts[dataset] <= maxchunks:
            pieces.append([span])
    return pieces
