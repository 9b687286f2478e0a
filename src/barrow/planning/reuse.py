"""Use a plan again: on other data of the same kind, perhaps on another machine.

Pure: a plan and what is there in, a plan or the reasons against it out.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from barrow.errors import BudgetError, InputError
from barrow.model.applied import Apply, leaves
from barrow.model.grid import Grid
from barrow.model.plan import Place, Plan
from barrow.model.site import Site
from barrow.model.source import Source
from barrow.planning.candidates import cuttable_dims
from barrow.planning.crew import list_shares
from barrow.planning.layout import make_layout, task_budget
from barrow.planning.placement import asked_by, count_here, explain_placement, place
from barrow.planning.planner import predict_plan, step_names
from barrow.planning.stored import (
    READER_BYTES,
    choose_between,
    choose_stored_chunks,
    divides,
)
from barrow.units import format_bytes, format_count

AGAIN = "Make it again with barrow.plan."


@dataclass(frozen=True)
class Here:
    """What there is for a plan that is used again."""

    site: Site
    memory_bytes: int | None = None
    """What the user allows; None for all that is free."""
    held_bytes: int = 0
    """Of that, taken by the result of the stage before."""
    reader_cuts: Collection[str] | None = None
    """Dimensions that the next stage cuts; None for the last stage."""
    reader_bytes: int = READER_BYTES
    """What a task of the next stage may hold of the result."""
    wants_store: bool = False
    may_be_parallel: bool = True

    @property
    def room_bytes(self) -> int:
        """Memory that a run may use."""
        allowed = self.memory_bytes or self.site.machine.available_bytes
        return max(1, allowed - self.held_bytes)


def list_misfits(like: Plan, target: Source, here: Here) -> list[str]:
    """Return why the chunks and workers of a plan cannot be used; memory aside.

    Lengths may differ: chunks are kept.
    """
    return [*_misfits_of_data(like, target), *_misfits_of_site(like, target, here)]


def reuse_plan(like: Plan, target: Source, here: Here) -> Plan:
    """Return the plan for a chain of steps with chunks, workers and cost of another plan."""
    here = replace(here, site=place(here.site, target))
    misfits = list_misfits(like, target, here)
    if misfits:
        raise InputError(join_misfits(like, misfits))
    result = _place(like, target, here)
    chunk = _fit_chunk(like, target)
    strides = _fit_strides(like, target, chunk)
    stored = _fit_stored(like, target, here, chunk) if result == "store" else {}
    cost = replace(like.cost, probing_seconds=0.0)
    held = target.nbytes if result == "memory" else 0
    share = _share(like, here, held)
    layout = make_layout(
        like.engine,
        like.workers,
        like.threads,
        cost=cost,
        site=here.site,
        memory_bytes=min(like.memory_bytes, here.room_bytes),
        budget_bytes=share,
    )
    made = predict_plan(
        target,
        cost=cost,
        site=here.site,
        place=result,
        layout=replace(layout, at_once=like.at_once),
        chunk=chunk,
        strides=strides,
        stored=stored,
        reasons=("chunks, workers and cost are those of an earlier plan",),
    )
    if made.peak_bound_bytes > share:
        raise BudgetError(_explain_memory(like, made, here, held))
    # An edited chunk may need more than the plan once allowed, if it is there.
    budget = max(like.budget_bytes, made.peak_bound_bytes)
    return replace(made, budget_bytes=min(budget, made.budget_bytes))


def join_misfits(like: Plan, misfits: Sequence[str]) -> str:
    """Return the reasons against a plan as one message."""
    if len(misfits) == 1:
        return f"The plan for '{like.name}' does not fit: {misfits[0]}. {AGAIN}"
    listed = "\n".join(f"- {reason}" for reason in misfits)
    return f"The plan for '{like.name}' does not fit:\n{listed}\n{AGAIN}"


def _misfits_of_data(like: Plan, target: Source) -> list[str]:
    steps = step_names(target)
    if like.steps != steps:
        return [f"it is for the steps {_list(like.steps)}, but these are {_list(steps)}"]
    if tuple(like.lengths) != target.dims:
        return [f"it cuts the dimensions {_list(like.lengths)}, but here are {_list(target.dims)}"]
    misfits = []
    is_map = not (isinstance(target.read, Apply) and target.read.step.combine is not None)
    if is_map != bool(like.dtype):
        kinds = {True: "a map", False: "a reduction"}
        misfits.append(f"it is for {kinds[bool(like.dtype)]}, but this is {kinds[is_map]}")
    elif is_map and np.dtype(like.dtype).itemsize != target.dtype.itemsize:
        misfits.append(f"its result is {np.dtype(like.dtype)}, but this one is {target.dtype}")
    misfits += _misfits_of_sources(like, leaves(target))
    cuttable = cuttable_dims(target)
    for dim, size in like.grid.chunk.items():
        if dim not in cuttable and size < like.lengths[dim]:
            misfits.append(
                f"it cuts '{dim}' into chunks of {size}, but '{target.name}' can be cut along "
                f"{_list(cuttable) or 'nothing'} only"
            )
    return misfits


def _misfits_of_sources(like: Plan, sources: Sequence[Source]) -> list[str]:
    if len(like.reads) != len(sources):
        return [f"it reads {format_count(len(like.reads), 'source')}, but here are {len(sources)}"]
    return [
        f"it was made for {np.dtype(dtype)}, but '{source.name}' is {source.dtype}"
        for dtype, source in zip(like.reads, sources, strict=True)
        if np.dtype(dtype).itemsize != source.dtype.itemsize
    ]


def _misfits_of_site(like: Plan, target: Source, here: Here) -> list[str]:
    site = here.site
    if like.engine == "dask":
        if site.kind != "dask":
            return ["it runs on a Dask cluster, but there is none: give one with cluster="]
        threads = max((offer.threads for offer in site.offers), default=1)
        if like.workers > site.workers or like.threads > threads:
            return [
                f"it runs on {_crew(like.workers, like.threads)}, but the cluster has "
                f"{_crew(site.workers, threads)}"
            ]
        return []
    if not here.may_be_parallel and like.slots > 1:
        return [f"it runs {like.slots} tasks at once, but cluster=False rules that out"]
    at_most = count_here(asked_by(target), site.machine.cores)
    if at_most is not None and like.slots > at_most:
        return [f"it runs {like.slots} tasks, but {explain_placement(target, site, at_most)}"]
    if like.slots > site.machine.cores:
        return [
            f"it runs {like.slots} tasks at once and was made on a machine with "
            f"{format_count(like.cores, 'core')}, but here "
            + ("is 1" if site.machine.cores == 1 else f"are {site.machine.cores}")
        ]
    return []


def _share(like: Plan, here: Here, held_bytes: int) -> int:
    """Return what one task may use here at most, beside a result in memory."""
    room = max(1, here.room_bytes - held_bytes)
    if like.engine == "dask" and here.site.limit_bytes:
        first, *others = list_shares(here.site.offers)
        enough = [share for share in others if share.at_once >= like.slots]
        return max(share.budget_bytes for share in (first, *enough))
    if like.engine in ("processes", "dask"):
        return max(1, task_budget(room // like.workers, like.threads))
    return max(1, room // like.slots)


def _explain_memory(like: Plan, made: Plan, here: Here, result_bytes: int) -> str:
    machine = here.site.machine
    needed = format_bytes(made.slots * made.peak_bound_bytes + result_bytes)
    tasks = "1 task needs" if made.slots == 1 else f"{made.slots} tasks need"
    result = f", its result of {format_bytes(result_bytes)} included" if result_bytes else ""
    allowed = ""
    if here.memory_bytes is not None:
        allowed = f", of which memory= allows {format_bytes(here.memory_bytes)}"
    return (
        f"The plan for '{like.name}' was made on a machine with "
        f"{format_count(like.cores, 'core')} and {format_bytes(like.available_bytes)} free; here "
        f"are {machine.cores} and {format_bytes(machine.available_bytes)}{allowed}.\n"
        f"Its {tasks} up to {needed}{result}: one task {format_bytes(made.peak_bound_bytes)}, "
        f"but it may use {format_bytes(made.budget_bytes)} here.\n"
        "Allow more with memory=, make its chunks smaller, or make it again with barrow.plan."
    )


def _place(like: Plan, target: Source, here: Here) -> Place:
    if isinstance(target.read, Apply) and target.read.step.combine is not None:
        return "value"
    is_far = like.engine == "dask" and not here.site.is_local
    return "store" if here.wants_store or is_far or like.result == "store" else "memory"


def _fit_chunk(like: Plan, target: Source) -> dict[str, int]:
    """Return the chunks of the plan for data that may be longer or shorter."""
    cuttable = cuttable_dims(target)
    kept = {dim: size for dim, size in like.grid.chunk.items() if dim in cuttable}
    return dict(Grid(target.lengths, kept).chunk)


def _fit_strides(like: Plan, target: Source, chunk: Mapping[str, int]) -> dict[str, int]:
    """Return the strides of the plan; none if they are as long as the chunk itself."""
    cuttable = cuttable_dims(target)
    strides = {
        dim: min(size, like.strides.get(dim, size)) if dim in cuttable else size
        for dim, size in chunk.items()
    }
    return {} if strides == chunk else strides


def _fit_stored(
    like: Plan, target: Source, here: Here, chunk: Mapping[str, int]
) -> Mapping[str, int]:
    """Return the storage chunks of the plan, or others if two tasks would share one."""
    lengths, itemsize = target.lengths, target.dtype.itemsize
    stored = {dim: max(1, min(size, lengths[dim])) for dim, size in like.stored_chunks.items()}
    if set(stored) == set(chunk) and divides(stored, chunk, lengths):
        return stored
    if here.reader_cuts is None:
        return choose_stored_chunks(chunk, lengths=lengths, grain=target.grain, itemsize=itemsize)
    return choose_between(
        chunk,
        lengths=lengths,
        reader_cuts=here.reader_cuts,
        itemsize=itemsize,
        reader_bytes=here.reader_bytes,
    )


def _list(names: Sequence[str] | Mapping[str, int]) -> str:
    return ", ".join(map(repr, names))


def _crew(workers: int, threads: int) -> str:
    return f"{format_count(workers, 'worker')} with {format_count(threads, 'thread')}"
