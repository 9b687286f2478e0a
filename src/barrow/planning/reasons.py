"""Say why a plan is as it is."""

from barrow.model.applied import Apply
from barrow.model.cost import Cost
from barrow.model.plan import Place
from barrow.model.source import Source
from barrow.planning.candidates import Candidate
from barrow.units import format_bytes, format_count, format_seconds

_WAYS = {
    "inline": "one chunk after the other",
    "threads": "threads",
    "processes": "worker processes",
    "dask": "the Dask cluster that is up",
}


def list_reasons(
    target: Source,
    cost: Cost,
    ranked: list[Candidate],
    wants_store: bool,
    place: Place,
    may_be_parallel: bool,
) -> tuple[str, ...]:
    """Return what decided, a line for each: the way of working, the chunks, the place."""
    best = ranked[0]
    reasons = []
    if not may_be_parallel:
        reasons.append("parallel work was ruled out by cluster=False")
    elif best.layout.engine == "dask":
        reasons.append(f"{_WAYS['dask']}: {format_count(best.layout.workers, 'worker')}")
        if best.layout.is_reserve:
            reasons.append(
                f"{format_count(best.layout.slots, 'task')} at once, not more: one may need "
                f"{format_bytes(best.peak_bound)}, and so much has to be free in its worker"
            )
        if best.peak_bound > best.layout.budget_bytes:
            reasons.append(
                f"that is more than the {format_bytes(best.layout.budget_bytes)} of a whole "
                "worker: it is tried, because what is predicted fits"
            )
    elif not cost.is_measured:
        reasons.append("too little data to be worth measuring, or sharing")
    for other in ranked[1:2]:
        ways = (
            f"{_WAYS[best.layout.engine]}: {format_seconds(best.seconds)}; next best "
            f"{_WAYS[other.layout.engine]}: {format_seconds(other.seconds)}"
        )
        is_alone = best.layout.slots == 1
        reasons.append(f"parallel work would not pay: {ways}" if is_alone else ways)
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
    if best.strides:
        size = " × ".join(f"{dim} {n}" for dim, n in best.strides.items())
        reasons.append(f"a task walks its chunk in blocks of {size}: less memory, or faster")
    if grain and all(chunk[d] % n == 0 or chunk[d] == lengths[d] for d, n in grain.items()):
        size = " × ".join(f"{dim} {n}" for dim, n in grain.items())
        reasons.append(f"chunks are whole storage chunks ({size}): nothing is read twice")
    return reasons
