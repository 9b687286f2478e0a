"""What an unfinished run of the same work has left, and whether it can be used."""

from contextlib import suppress
from dataclasses import dataclass, replace

from barrow.errors import BarrowError
from barrow.model.plan import Plan
from barrow.planning.stored import divides
from barrow.recording.opening import read_fact
from barrow.running import folders, stores
from barrow.running.folders import RunFolder


@dataclass(frozen=True)
class Leftover:
    """What an earlier run of the same work has left."""

    plan: Plan | None = None
    """Its plan; None if there is nothing that could be used."""
    fault: str = ""
    """What was wrong with it, as a sentence."""

    def settle(self, plan: Plan) -> Plan:
        """Return a plan with the chunks in which the work was begun."""
        if self.plan is None:
            return plan
        return replace(
            plan,
            chunks=self.plan.chunks,
            strides=self.plan.strides,
            stored_chunks=self.plan.stored_chunks,
        )


def adopt(plan: Plan, folder: RunFolder, key: str | None) -> Leftover:
    """Return what an unfinished run of the same work has left; remove what cannot be used."""
    fault = ""
    if key is not None and folder.read_key() == key:
        earlier = _read_earlier(folder)
        if earlier is None or not _is_alike(earlier, plan):
            fault = "its plan cannot be read"
        elif not _has_store(earlier, plan, folder):
            fault = "its store is damaged"
        else:
            return Leftover(earlier)
        fault = f"An unfinished run was found, but {fault}: everything is done again."
    folders.empty(folder)
    return Leftover(fault=fault)


def _read_earlier(folder: RunFolder) -> Plan | None:
    """Return the plan of an unfinished run, from its file or else from its record."""
    with suppress(BarrowError):
        return Plan.load(folder.plan_path)
    with suppress(BarrowError):
        return Plan.from_json(read_fact(folder.record_path, "plan") or "")
    return None


def _is_alike(earlier: Plan, plan: Plan) -> bool:
    try:
        chunk = earlier.grid.chunk
    except BarrowError:
        return False
    is_same = dict(earlier.lengths) == dict(plan.lengths) and earlier.dtype == plan.dtype
    return is_same and divides(earlier.stored_chunks, chunk, plan.lengths)


def _has_store(earlier: Plan, plan: Plan, folder: RunFolder) -> bool:
    assert plan.target is not None
    return stores.is_as_made(
        folder.store,
        lengths=plan.target.lengths,
        dtype=plan.target.dtype,
        chunks=earlier.stored_chunks,
        variable=stores.variable_of(plan.target),
    )
