"""Make the plan for a chain of steps: chunks and layout so that the run ends soonest.

Pure: the same source, cost and site always give the same plan.
"""

from collections.abc import Mapping

from barrow.model.applied import Apply, leaves
from barrow.model.cost import Cost
from barrow.model.plan import Place, Plan, describe_source
from barrow.model.site import Site
from barrow.model.source import Source
from barrow.planning import placement
from barrow.planning.candidates import Candidate, Choice, cuttable_dims
from barrow.planning.layout import MEMORY_SHARE, Layout, list_layouts
from barrow.planning.reasons import list_reasons
from barrow.planning.stored import choose_stored_chunks


def make_plan(
    target: Source,
    *,
    cost: Cost,
    site: Site,
    memory_bytes: int | None,
    wants_store: bool,
    may_be_parallel: bool,
    least: Mapping[str, int] | None = None,
) -> Plan:
    """Return the plan for a chain of steps at a site.

    Parameters
    ----------
    least
        How long chunks should be at least, where the memory allows it, because of
        who reads the result.
    """
    is_map = not (isinstance(target.read, Apply) and target.read.step.combine is not None)
    placed = placement.place(site, target)
    at_most = placement.count_here(placement.asked_by(target), site.machine.cores)
    place: Place = "value"
    if is_map:
        place = "store" if wants_store or is_stored(target, site, memory_bytes) else "memory"
    layouts = list_layouts(
        placed,
        cost=cost,
        held_bytes=target.nbytes if place == "memory" else 0,
        memory_bytes=memory_bytes,
        may_be_parallel=may_be_parallel,
        at_most=at_most,
    )
    ranked = Choice(target, cost, place, least).rank(layouts)
    best = ranked[0]
    stored: Mapping[str, int] = {}
    if place == "store":
        stored = choose_stored_chunks(
            best.chunk, lengths=target.lengths, grain=target.grain, itemsize=target.dtype.itemsize
        )
    reasons = list_reasons(target, cost, ranked, wants_store, place, may_be_parallel)
    if at_most is not None and may_be_parallel:
        reasons = (placement.explain_placement(target, placed, best.layout.slots), *reasons)
    return _describe(target, cost, site, place, best, stored, reasons)


def is_stored(target: Source, site: Site, memory_bytes: int | None) -> bool:
    """Return whether a result that needs no place of its own goes to disk all the same."""
    memory = memory_bytes or int(MEMORY_SHARE * site.machine.available_bytes)
    return target.nbytes > memory / 2 or (site.kind == "dask" and not site.is_local)


def predict_plan(
    target: Source,
    *,
    cost: Cost,
    site: Site,
    place: Place,
    layout: Layout,
    chunk: Mapping[str, int],
    strides: Mapping[str, int],
    stored: Mapping[str, int],
    reasons: tuple[str, ...],
) -> Plan:
    """Return the plan for a layout and chunks that are given, with its predictions."""
    choice = Choice(target, cost, place, {})
    chosen = choice.predict(layout, dict(chunk), dict(strides))
    return _describe(target, cost, site, place, chosen, stored, reasons)


def _describe(
    target: Source,
    cost: Cost,
    site: Site,
    place: Place,
    best: Candidate,
    stored: Mapping[str, int],
    reasons: tuple[str, ...],
) -> Plan:
    return Plan(
        name=target.name,
        steps=step_names(target),
        source=", ".join(describe_source(leaf) for leaf in leaves(target)),
        lengths=target.lengths,
        cuttable=cuttable_dims(target),
        chunks=best.chunk,
        strides=best.strides,
        stored_chunks=stored,
        result=place,
        dtype=target.dtype.str if place != "value" else "",
        engine=best.layout.engine,
        workers=best.layout.workers,
        threads=best.layout.threads,
        at_once=best.layout.at_once,
        is_local=site.is_local,
        cores=site.machine.cores,
        available_bytes=site.machine.available_bytes,
        memory_bytes=best.layout.memory_bytes,
        budget_bytes=best.layout.budget_bytes,
        items=best.items,
        peak_bytes=int(best.peak_bytes),
        peak_bound_bytes=int(best.peak_bound),
        task_seconds=best.task_seconds,
        seconds=best.seconds if cost.is_measured else 0.0,
        reasons=reasons,
        resources=placement.asked_by(target),
        reads=tuple(leaf.dtype.str for leaf in leaves(target)),
        cost=cost,
        target=target,
    )


def step_names(target: Source) -> tuple[str, ...]:
    """Return the names of the steps of a chain, first to last."""
    if not isinstance(target.read, Apply):
        return ()
    return (*step_names(target.read.inputs[0]), target.read.step.name)
