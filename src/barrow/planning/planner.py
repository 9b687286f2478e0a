"""Put chunks, layout and predictions together into a plan.

Pure: the same source, cost and site always give the same plan.
"""

from collections.abc import Mapping

from barrow.model.applied import Apply, leaves
from barrow.model.cost import Cost
from barrow.model.plan import Place, Plan, describe_source
from barrow.model.site import Site
from barrow.model.source import Source
from barrow.planning.chunks import CountItems, choose_chunks, count_chunks
from barrow.planning.layout import MEMORY_SHARE, choose_layout
from barrow.planning.stored import choose_stored_chunks
from barrow.units import format_bytes

# A few megabytes stay in the caches of a core while several steps pass over them.
WANTED_BYTES = 4 * 2**20
# A task shall last this many times longer than it costs to hand it out.
OVERHEAD_RATIO = 20
OVERHEAD_SECONDS = 100e-6
CHUNKS_PER_SLOT = 4
# The peak is predicted from a small block; allow for being wrong.
PEAK_MARGIN = 1.25


def cuttable_dims(target: Source) -> tuple[str, ...]:
    """Return the dimensions that can be cut through a whole chain of steps."""
    if not isinstance(target.read, Apply):
        return target.dims
    dims: tuple[str, ...] = target.read.form.cuttable
    for below in target.read.inputs:
        through = cuttable_dims(below)
        dims = tuple(dim for dim in dims if dim in through or dim not in below.lengths)
    return dims


def first_chunks(target: Source, count_items: CountItems) -> dict[str, int]:
    """Return chunks of a working size before any cost is known, to be measured."""
    return choose_chunks(
        target.lengths,
        grain=target.grain,
        cuttable=cuttable_dims(target),
        count_items=count_items,
        wanted_items=_wanted_items(target),
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
    total_items = count_items(target.lengths)
    layout = choose_layout(
        site,
        cost=cost,
        total_seconds=cost.seconds(total_items),
        held_bytes=target.nbytes if place == "memory" else 0,
        memory_bytes=memory_bytes,
        may_be_parallel=may_be_parallel,
    )
    slots = layout.workers * layout.threads
    wanted = _wanted_items(target)
    if cost.seconds_per_item:
        worth = OVERHEAD_RATIO * OVERHEAD_SECONDS / cost.seconds_per_item
        wanted = max(wanted, min(int(worth), 16 * wanted))
    chunks = choose_chunks(
        target.lengths,
        grain=target.grain,
        cuttable=cuttable_dims(target),
        count_items=count_items,
        wanted_items=wanted if cost.is_measured else 2**62,
        most_items=cost.items_within(layout.budget_bytes / PEAK_MARGIN),
        fewest_chunks=CHUNKS_PER_SLOT * slots if slots > 1 else 1,
        bytes_per_item=cost.peak_per_item * PEAK_MARGIN,
    )
    stored: Mapping[str, int] = {}
    if place == "store":
        stored = choose_stored_chunks(
            chunks, lengths=target.lengths, grain=target.grain, itemsize=target.dtype.itemsize
        )
    n_chunks = count_chunks(target.lengths, chunks)
    items = count_items(chunks)
    return Plan(
        name=target.name,
        steps=step_names(target),
        source=", ".join(describe_source(leaf) for leaf in leaves(target)),
        lengths=target.lengths,
        cuttable=cuttable_dims(target),
        chunks=chunks,
        stored_chunks=stored,
        result=place,
        dtype=target.dtype.str if is_map else "",
        engine=layout.engine,
        workers=layout.workers,
        threads=layout.threads,
        is_local=site.is_local,
        memory_bytes=layout.memory_bytes,
        budget_bytes=layout.budget_bytes,
        peak_bytes=int(cost.peak_bytes(items)),
        seconds=n_chunks * cost.seconds(items) / slots if cost.is_measured else 0.0,
        reasons=_reasons(target, chunks, layout.reason, wants_store, place, memory),
        target=target,
    )


def step_names(target: Source) -> tuple[str, ...]:
    """Return the names of the steps of a chain, first to last."""
    if not isinstance(target.read, Apply):
        return ()
    return (*step_names(target.read.inputs[0]), target.read.step.name)


def _wanted_items(target: Source) -> int:
    itemsize = max([leaf.dtype.itemsize for leaf in leaves(target)], default=1)
    return max(1, WANTED_BYTES // max(1, itemsize))


def _reasons(
    target: Source,
    chunks: Mapping[str, int],
    layout_reason: str,
    wants_store: bool,
    place: Place,
    memory: int,
) -> tuple[str, ...]:
    reasons = [layout_reason]
    apply = target.read
    if isinstance(apply, Apply):
        inferred = sorted(apply.form.whole - set(map(str, apply.step.whole)))
        if inferred and apply.step.combine is None:
            names = ", ".join(map(repr, inferred))
            reasons.append(f"{names} stays whole: '{apply.step.name}' changes or drops it")
    grain = {dim: n for dim, n in target.grain.items() if n > 1 and dim in chunks}
    if grain and all(
        chunks[dim] % n == 0 or chunks[dim] == target.lengths[dim] for dim, n in grain.items()
    ):
        size = " × ".join(f"{dim} {n}" for dim, n in grain.items())
        reasons.append(f"chunks are whole storage chunks ({size}): nothing is read twice")
    if place == "store" and not wants_store:
        reasons.append(
            f"the result of {format_bytes(target.nbytes)} goes to disk: "
            f"{format_bytes(memory)} of memory are allowed"
        )
    return tuple(reasons)
