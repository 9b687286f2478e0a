"""Choose chunks and layout so that the run ends soonest and no task needs too much.

Pure: the same source, cost and site always give the same plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from barrow.errors import BudgetError
from barrow.model.applied import Apply, leaves
from barrow.model.cost import Cost
from barrow.model.plan import Place, Plan, describe_source
from barrow.model.site import Site
from barrow.model.source import Source
from barrow.planning.chunks import CountItems, count_chunks
from barrow.planning.ladder import balance, climb
from barrow.planning.layout import MEMORY_SHARE, Layout, list_layouts
from barrow.planning.stored import choose_stored_chunks
from barrow.units import format_bytes, format_count, format_seconds


@dataclass(frozen=True)
class Candidate:
    """One way to do it, with its predictions."""

    layout: Layout
    chunk: dict[str, int]
    n_chunks: int
    items: int
    task_seconds: float
    seconds: float


def cuttable_dims(target: Source) -> tuple[str, ...]:
    """Return the dimensions that can be cut through a whole chain of steps."""
    if not isinstance(target.read, Apply):
        return target.dims
    dims: tuple[str, ...] = target.read.form.cuttable
    for below in target.read.inputs:
        through = cuttable_dims(below)
        dims = tuple(dim for dim in dims if dim in through or dim not in below.lengths)
    return dims


def list_rungs(target: Source, count_items: CountItems) -> list[dict[str, int]]:
    """Return chunks of all sizes, before any cost is known: some of them are measured."""
    return climb(
        target.lengths,
        grain=target.grain,
        cuttable=cuttable_dims(target),
        count_items=count_items,
        most_items=2**62,
    )


def make_plan(
    target: Source,
    *,
    cost: Cost,
    site: Site,
    count_items: CountItems,
    memory_bytes: int | None,
    wants_store: bool,
    may_be_parallel: bool,
) -> Plan:
    """Return the plan for a chain of steps at a site."""
    is_map = not (isinstance(target.read, Apply) and target.read.step.combine is not None)
    memory = memory_bytes or int(MEMORY_SHARE * site.machine.available_bytes)
    place: Place = "value"
    if is_map:
        fits = target.nbytes <= memory / 2 and (site.kind != "dask" or site.is_local)
        place = "memory" if fits and not wants_store else "store"
    layouts = list_layouts(
        site,
        cost=cost,
        held_bytes=target.nbytes if place == "memory" else 0,
        memory_bytes=memory_bytes,
        may_be_parallel=may_be_parallel,
    )
    ranked = _rank(target, cost, layouts, count_items, place)
    best = ranked[0]
    stored: Mapping[str, int] = {}
    if place == "store":
        stored = choose_stored_chunks(
            best.chunk, lengths=target.lengths, grain=target.grain, itemsize=target.dtype.itemsize
        )
    return Plan(
        name=target.name,
        steps=step_names(target),
        source=", ".join(describe_source(leaf) for leaf in leaves(target)),
        lengths=target.lengths,
        cuttable=cuttable_dims(target),
        chunks=best.chunk,
        stored_chunks=stored,
        result=place,
        dtype=target.dtype.str if is_map else "",
        engine=best.layout.engine,
        workers=best.layout.workers,
        threads=best.layout.threads,
        is_local=site.is_local,
        memory_bytes=best.layout.memory_bytes,
        budget_bytes=best.layout.budget_bytes,
        peak_bytes=int(cost.peak_bytes(best.items)),
        peak_bound_bytes=int(cost.peak_bound(best.items)),
        seconds=best.seconds if cost.is_measured else 0.0,
        reasons=_reasons(target, cost, ranked, wants_store, place, may_be_parallel),
        target=target,
    )


def step_names(target: Source) -> tuple[str, ...]:
    """Return the names of the steps of a chain, first to last."""
    if not isinstance(target.read, Apply):
        return ()
    return (*step_names(target.read.inputs[0]), target.read.step.name)


def _rank(
    target: Source, cost: Cost, layouts: list[Layout], count_items: CountItems, place: Place
) -> list[Candidate]:
    """Return the best candidate of each layout, the best of all first."""
    found = []
    refused: BudgetError | None = None
    for layout in layouts:
        try:
            found.append(_best_of(target, cost, layout, count_items, place))
        except BudgetError as error:
            # More tasks at once have less memory each: another layout may still fit.
            refused = refused or error
    if not found:
        assert refused is not None
        raise refused
    return sorted(found, key=lambda candidate: candidate.seconds)


def _best_of(
    target: Source, cost: Cost, layout: Layout, count_items: CountItems, place: Place
) -> Candidate:
    cuttable = cuttable_dims(target)
    rungs = climb(
        target.lengths,
        grain=target.grain,
        cuttable=cuttable,
        count_items=count_items,
        most_items=cost.items_within(layout.budget_bytes),
        bytes_per_item=cost.peak_per_item * (1 + cost.peak_margin),
    )
    if not cost.is_measured:
        return _candidate(target, cost, layout, rungs[-1], count_items, place)
    tried = [_candidate(target, cost, layout, rung, count_items, place) for rung in rungs]
    best = min(tried, key=lambda candidate: candidate.seconds)
    balanced = balance(
        best.chunk,
        lengths=target.lengths,
        grain=target.grain,
        cuttable=cuttable,
        slots=layout.slots,
    )
    other = _candidate(target, cost, layout, balanced, count_items, place)
    return min(best, other, key=lambda candidate: candidate.seconds)


def _candidate(
    target: Source,
    cost: Cost,
    layout: Layout,
    chunk: dict[str, int],
    count_items: CountItems,
    place: Place,
) -> Candidate:
    n_chunks = count_chunks(target.lengths, chunk)
    items = count_items(chunk)
    share = prod(chunk.values()) / max(1, prod(target.lengths.values()))
    written = share * target.nbytes if place == "store" else 0.0
    task = cost.seconds(items) + cost.write_seconds_per_byte * written
    carried = target.nbytes if place == "memory" else 0
    carried += sum(leaf.nbytes for leaf in leaves(target) if leaf.read.is_heavy)
    return Candidate(layout, chunk, n_chunks, items, task, layout.makespan(n_chunks, task, carried))


_WAYS = {
    "inline": "one chunk after the other",
    "threads": "threads",
    "processes": "worker processes",
    "dask": "the Dask cluster that is up",
}


def _reasons(
    target: Source,
    cost: Cost,
    ranked: list[Candidate],
    wants_store: bool,
    place: Place,
    may_be_parallel: bool,
) -> tuple[str, ...]:
    best = ranked[0]
    reasons = []
    if not may_be_parallel:
        reasons.append("parallel work was ruled out by cluster=False")
    elif best.layout.engine == "dask":
        reasons.append(f"{_WAYS['dask']}: {format_count(best.layout.workers, 'worker')}")
    elif not cost.is_measured:
        reasons.append("too little data to be worth measuring, or sharing")
    for other in ranked[1:2]:
        reasons.append(
            f"{_WAYS[best.layout.engine]}: {format_seconds(best.seconds)}; next best "
            f"{_WAYS[other.layout.engine]}: {format_seconds(other.seconds)}"
        )
    reasons += _reasons_for_chunks(target, best)
    if place == "store" and not wants_store:
        reasons.append(
            f"the result of {format_bytes(target.nbytes)} goes to disk: "
            f"{format_bytes(best.layout.memory_bytes)} of memory are allowed"
        )
    return tuple(reasons)


def _reasons_for_chunks(target: Source, best: Candidate) -> list[str]:
    reasons = []
    apply = target.read
    if isinstance(apply, Apply) and apply.step.combine is None:
        inferred = sorted(apply.form.whole - set(map(str, apply.step.whole)))
        if inferred:
            names = ", ".join(map(repr, inferred))
            reasons.append(f"{names} stays whole: '{apply.step.name}' changes or drops it")
    lengths, chunk = target.lengths, best.chunk
    grain = {dim: n for dim, n in target.grain.items() if n > 1 and dim in chunk}
    if grain and all(chunk[d] % n == 0 or chunk[d] == lengths[d] for d, n in grain.items()):
        size = " × ".join(f"{dim} {n}" for dim, n in grain.items())
        reasons.append(f"chunks are whole storage chunks ({size}): nothing is read twice")
    return reasons
