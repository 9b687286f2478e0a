"""Run a processor over the events of many files."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from barrow.composing import fenced, find_memory, find_site, fuse
from barrow.errors import InputError, OutputError, SkippedWarning
from barrow.fields.collider.analysis import Analysis, OnError, Span
from barrow.fields.collider.catalogue import Listed, Unlisted, list_contents
from barrow.fields.collider.columns import Schema
from barrow.fields.collider.cutting import Pace, cut_pieces, list_spans
from barrow.fields.collider.filesets import list_files
from barrow.fields.collider.kept import Begun, Kept, load_output, read_about, save_output
from barrow.fields.collider.measuring import measure
from barrow.fields.collider.metrics import advise, summarise
from barrow.fields.collider.tally import Skip, Tally, finish
from barrow.model.cost import Cost
from barrow.model.plan import Plan
from barrow.model.run import Run as EngineRun
from barrow.model.site import Site
from barrow.model.source import Reader, Source
from barrow.model.step import Step
from barrow.planning.planner import make_plan
from barrow.running.fingerprint import fingerprint
from barrow.shared import Ranges
from barrow.sources.identity import identify_file, identify_text
from barrow.units import format_count, format_seconds

POLICIES = ("stop", "skip", "skip-file")
# What a worker needs until it can read a file: awkward, uproot, vector.
IMPORT_SECONDS = 1.0
# The output of a task may be as large as what it read.
BUDGET_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Run:
    """What a processor made of its files.

    Examples
    --------
    >>> import tempfile
    >>> from barrow import collider
    >>> path = collider.write_nanoaod(f"{tempfile.mkdtemp()}/few.root", 1000)
    >>> run = collider.run(lambda events: {"muons": int(collider.ak.sum(
    ...     collider.ak.num(events.Muon)))}, path)
    >>> run.metrics["entries"], sorted(run.metrics["columns"])
    (1000, ['nMuon'])
    """

    output: Any
    """The sum of what the processor returned, after its ``postprocess``."""
    metrics: Mapping[str, Any] = field(repr=False)
    """Numbers of the run; see :mod:`barrow.fields.collider.metrics`."""
    skipped: tuple[Skip, ...] = ()
    """Events that are not in the output, to the event, and why."""
    engine_run: EngineRun | None = field(default=None, repr=False)
    """The run of the engine room: its plan, folder and report."""

    @property
    def record(self) -> Any:
        """The record of the run, as tables; None if the output was there already."""
        if self.engine_run is None:
            return None
        from barrow.observing import record

        return record(self.engine_run.folder)

    @property
    def report_path(self) -> Path | None:
        """The report, one HTML file; None if the output was there already."""
        return None if self.engine_run is None else self.engine_run.report_path

    def __str__(self) -> str:
        m = self.metrics
        lines = [
            f"{m['entries']:,} of {m['entries_planned']:,} events in "
            f"{format_seconds(m['wall_seconds'])} ({m['kHz']:,.0f} kHz, "
            f"{m['kHz_per_core']:,.0f} kHz for each core, {m['Gbit_per_second']:.2f} Gbit/s), "
            f"{format_count(m['chunks'], 'call')}, {format_count(len(m['columns']), 'column')}. "
            + advise(m)
        ]
        return "\n".join([*lines, *(f"Skipped: {skip}" for skip in self.skipped)])


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
    _check(on_error, chunksize, maxchunks)
    began = time.perf_counter()
    job = _Job.of(processor, fileset, treename, schema, on_error)
    options = {
        "quiet": quiet,
        "memory": memory,
        "cluster": cluster,
        # Events are left out where they are read; here only what a worker died of is.
        "on_error": "stop" if on_error == "stop" else "skip",
    }
    place = None if to is None else Path(to)
    key = job.key(chunksize, maxchunks) if place is not None and resume else None
    if place is not None and (found := _find_output(place, key)) is not None:
        return found
    kept = None if place is None else Kept.beside(place)
    analysis, plan = _plan(job, options, kept, key, chunksize, maxchunks)
    tally, ran = _execute(job, analysis, plan, cluster)
    output = job.finish(tally.value)
    planned = sum(file.entries for file in job.files)
    metrics = summarise(tally, planned, time.perf_counter() - began, ran.metrics if ran else {})
    skipped = _order(tally.skips)
    if place is not None and kept is not None:
        about = {"key": key, "metrics": metrics, "skipped": [vars(skip) for skip in skipped]}
        save_output(place, output, about)
        kept.remove()
    if skipped:
        _warn(skipped)
    return Run(output, metrics, skipped, ran)


def partial_output(to: str | PathLike[str]) -> Any:
    """Return the sum of what a run that is not finished has done so far, as a tally.

    Its ``value`` is what the processor returned, before ``postprocess``.
    """
    from barrow.fields.collider.tally import Merge

    return Kept.beside(Path(to)).total(Merge())


@dataclass(frozen=True)
class _Job:
    """What is to be done: a processor and files that can be opened."""

    process: Callable[[Any], Any]
    postprocess: Callable[[Any], Any] | None
    name: str
    files: Sequence[Listed]
    missing: tuple[Skip, ...]
    schema: Schema | type
    on_error: OnError

    @classmethod
    def of(cls, processor: Any, fileset: Any, tree: str, schema: Any, on_error: OnError) -> "_Job":
        if isinstance(processor, type):
            processor = processor()
        process = getattr(processor, "process", processor)
        if not callable(process):
            raise InputError(
                f"{processor!r} is no processor: give an object with process(events) or a function."
            )
        found = list_contents(list_files(fileset, tree))
        lost = [item for item in found if isinstance(item, Unlisted)]
        if lost and on_error == "stop":
            first = lost[0]
            more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
            raise InputError(
                f"{first.error}{more}, tried {format_count(first.attempts, 'time')}. Bring it "
                "back, or leave such files out with on_error='skip'."
            ) from first.error
        files = [item for item in found if isinstance(item, Listed)]
        if not files:
            raise InputError(f"No file of the fileset can be opened. The first: {lost[0].error}.")
        missing = tuple(
            Skip(item.entry.dataset, item.entry.path, 0, None, str(item.error), item.attempts)
            for item in lost
        )
        name = getattr(processor, "__name__", None) or type(processor).__name__
        after = getattr(processor, "postprocess", None)
        return cls(process, after, name, files, missing, schema, on_error)

    @property
    def analysis(self) -> Analysis:
        return Analysis(self.process, self.files, schema=self.schema, on_error=self.on_error)

    def finish(self, value: Any) -> Any:
        if self.postprocess is None or value is None:
            return value
        made = self.postprocess(value)
        return value if made is None else made

    def key(self, *settings: Any) -> str | None:
        """Return what tells this work from all other: code, files and settings."""
        files = [
            (identify_file(file.entry.path) or file.uuid, file.entry.tree, file.entry.dataset)
            for file in self.files
        ]
        metadata = [sorted(file.entry.metadata.items(), key=str) for file in self.files]
        facts = identify_text(files, metadata, self.schema, self.on_error, self.missing, *settings)
        source = Source("events", {"file": len(files)}, np.dtype("i8"), _Numbers(facts))
        return fingerprint(fuse(Step(self.process, self.name, combine=_first), [source]))


def _first(one: Any, _: Any) -> Any:
    return one


@dataclass(frozen=True)
class _Numbers(Reader):
    """Reads the numbers of pieces: the task knows what they mean."""

    facts: str = ""

    def __call__(self, ranges: Ranges) -> np.ndarray:
        return np.arange(*ranges[0])

    def identity(self) -> str | None:
        return self.facts


def _plan(
    job: _Job,
    options: Mapping[str, Any],
    kept: Kept | None,
    key: str | None,
    chunksize: int | None,
    maxchunks: int | None,
) -> tuple[Analysis, Plan | None]:
    """Return how to do it; no plan if nothing is left to do."""
    with find_site(options["cluster"]) as (site, _):
        earlier = kept.take_up(key) if kept is not None and key is not None else None
        if earlier is not None:
            begun, known = earlier
            pace = Pace(1e-6)
            analysis = replace(job.analysis, known=known, columns=begun.columns)
            pieces, chunk = begun.pieces, begun.chunk
        elif chunksize is not None or maxchunks is not None:
            analysis, pace, chunk = job.analysis, Pace(1e-6), 1
            pieces = _cut_as_asked(job.files, chunksize or 100_000, maxchunks)
        else:
            with fenced(job.name, site, options):
                analysis, pace = measure(job.analysis)
            memory = find_memory(site, options) or site.machine.available_bytes
            cores = _count_cores(site, options)
            budget = int(BUDGET_SHARE * memory / cores)
            pieces = cut_pieces(
                job.files, pace, cores=cores, known=analysis.known.keys(), budget_bytes=budget
            )
            chunk = 0
        analysis = replace(analysis, pieces=pieces)
        if not pieces:
            return analysis, None
        plan = _make_plan(job, analysis, pace, site, options)
        if chunk:
            plan = replace(plan, chunks={"piece": chunk})
        if kept is not None:
            if earlier is None:
                begun = Begun(pieces, plan.chunks["piece"], analysis.columns)
                kept.begin(key or "", begun, analysis.known)
            analysis = replace(analysis, keep=kept)
            plan = replace(plan, target=_target(job, analysis))
        return analysis, plan


def _make_plan(
    job: _Job, analysis: Analysis, pace: Pace, site: Site, options: Mapping[str, Any]
) -> Plan:
    spans = [span for piece in analysis.pieces for span in piece if span not in analysis.known]
    count = len(analysis.pieces)
    seconds = sum(map(pace.seconds, spans)) / count
    events = max((sum(span.events for span in piece) for piece in analysis.pieces), default=0)
    cores = site.machine.cores
    cost = Cost(
        points=((1, seconds), (4, 4 * seconds)),
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


def _target(job: _Job, analysis: Analysis) -> Source:
    source = Source("events", {"piece": len(analysis.pieces)}, np.dtype("i8"), _Numbers())
    return fuse(Step(analysis, job.name, combine=analysis.merge), [source])


def _count_cores(site: Site, options: Mapping[str, Any]) -> int:
    return 1 if options["cluster"] is False else max(1, site.machine.cores)


def _cut_as_asked(
    files: Sequence[Listed], chunksize: int, maxchunks: int | None
) -> list[list[Span]]:
    """Return a piece for each chunk that was asked for."""
    counts: dict[str, int] = {}
    pieces = []
    for span in list_spans(files, chunksize):
        dataset = files[span.file].entry.dataset
        counts[dataset] = counts.get(dataset, 0) + 1
        if maxchunks is None or counts[dataset] <= maxchunks:
            pieces.append([span])
    return pieces


def _execute(
    job: _Job, analysis: Analysis, plan: Plan | None, cluster: Any
) -> tuple[Tally, EngineRun | None]:
    """Return the sum, and the run that made it."""
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


def _without_torn_files(job: _Job, tally: Tally, lost: Sequence[Skip]) -> Tally:
    """Return a tally in which files with lost parts have no part, where they go as a whole."""
    paths = {skip.path for skip in lost}
    torn = {n: p for n, p in tally.portions.items() if job.files[n].entry.path in paths}
    marked = {n: replace(p, skips=(*p.skips, *lost[:1])) for n, p in torn.items()}
    return replace(tally, portions={**tally.portions, **marked})


def _order(skips: Sequence[Skip]) -> tuple[Skip, ...]:
    """Return what was left out in order, with neighbours joined that have the same reason."""
    joined: list[Skip] = []
    for skip in skips:
        last = joined[-1] if joined else None
        if last is not None and (last.path, last.stop, last.reason) == (
            skip.path,
            skip.start,
            skip.reason,
        ):
            joined[-1] = replace(last, stop=skip.stop)
        else:
            joined.append(skip)
    return tuple(joined)


def _find_output(place: Path, key: str | None) -> Run | None:
    """Return an output that is already there, if it is the one asked for."""
    if not place.exists():
        return None
    about = read_about(place)
    if key is None or about.get("key") != key:
        raise OutputError(
            f"{place} holds another output: it was made by another processor, with other settings "
            "or from other files. Choose another place, or move it away."
        )
    skipped = tuple(Skip(**skip) for skip in about["skipped"])
    return Run(load_output(place), about["metrics"], skipped)


def _check(on_error: str, chunksize: int | None, maxchunks: int | None) -> None:
    if on_error not in POLICIES:
        raise InputError(f"on_error={on_error!r} is not known: give one of {', '.join(POLICIES)}.")
    for name, value in (("chunksize", chunksize), ("maxchunks", maxchunks)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise InputError(f"{name}={value!r} is not a number of 1 or more.")


def _warn(skipped: Sequence[Skip]) -> None:
    warnings.warn(
        f"{format_count(len(skipped), 'part')} of the events could not be read or processed and "
        f"are not in the output. The first: {skipped[0]}\nAll are in .skipped.",
        SkippedWarning,
        stacklevel=3,
    )
