"""From what the user gave to a plan: steps, sources, site and cost put together."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from barrow.errors import BudgetError, InputError
from barrow.model.applied import Form, apply_step, join_lengths, leaves
from barrow.model.cost import Cost
from barrow.model.plan import Plan
from barrow.model.reading import block_at, count_block_bytes, count_items
from barrow.model.site import THREADS, Site
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.planning.candidates import cuttable_dims, list_rungs
from barrow.planning.layout import MEMORY_SHARE
from barrow.planning.placement import asked_by, count_here, place
from barrow.planning.planner import make_plan
from barrow.probing.costs import measure_cost
from barrow.probing.probe import learn_form
from barrow.probing.sizes import choose_samples
from barrow.remembering import (
    ask_cost,
    describe_source_of,
    doubting,
    keep_form,
    recall_form,
)
from barrow.running.fence import FENCE
from barrow.running.folders import check_place
from barrow.sites.machine import read_machine
from barrow.sources.opening import open_source
from barrow.units import format_bytes, parse_bytes

Halo = Mapping[Any, int | tuple[int, int]]

# Work on so little data is over before a measurement of it would be.
TINY_BYTES = 2**18
# A step that would stop data of more than this share of the memory from being cut is not fused.
FUSED_SHARE = 0.05
# Nor is it if one task would have to read more than this, while others could do a part of it.
FUSED_BYTES = 2**26
# What is read for one measurement may take this share of what a task may use.
SAMPLE_SHARE = 0.25
# Where the smallest chunk is larger than this, parts of it are measured first.
LARGE_GRAIN_BYTES = 2**22


def as_steps(
    func: Any,
    whole: Collection[str | int] = (),
    halo: Halo | None = None,
    border: str | float | None = "reflect",
    kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
    combine: Callable[[Any, Any], Any] | None = None,
    resources: Mapping[str, float] | None = None,
) -> list[Step]:
    """Return a function, a step or a list of either as steps."""
    if isinstance(func, Step):
        func = [func]
    if isinstance(func, (list, tuple)):
        if not func:
            raise InputError("There is no step to run: the list is empty.")
        if whole or halo or kwargs or name or combine or resources:
            raise InputError(
                "whole=, halo=, kwargs=, name=, combine= and resources= belong to the single steps "
                "here: write barrow.Step(func, whole=..., halo=...)."
            )
        steps = [step if isinstance(step, Step) else Step(step) for step in func]
    else:
        wants = resources or {}
        steps = [Step(func, name or "", whole, halo or {}, border, kwargs or {}, combine, wants)]
    for step in steps[:-1]:
        if step.combine is not None:
            raise InputError(f"'{step.name}' is a reduction, so it must be the last step.")
    return steps


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what cannot be done before the function is called for the first time."""
    if options.get("memory") is not None:
        parse_bytes(options["memory"])
    if options.get("to") is not None:
        check_place(options["to"])
    if options.get("on_error") not in (None, "stop", "skip"):
        raise InputError(
            f"on_error={options['on_error']!r} is not known: give 'stop' to end the run when the "
            "function fails, or 'skip' to leave that chunk out."
        )


def open_all(sources: Sequence[Any]) -> list[Source]:
    """Open what the user gave; name the dimensions of bare arrays after the first source."""
    if not sources:
        raise InputError("There is nothing to read: give at least one source.")
    opened = [open_source(source) for source in sources]
    first = opened[0]
    for index, source in enumerate(opened[1:], start=1):
        if not source.has_names and len(source.dims) <= len(first.dims):
            dims = first.dims[len(first.dims) - len(source.dims) :]
            lengths = dict(zip(dims, source.shape, strict=True))
            grain = dict(zip(dims, source.grain.values(), strict=True))
            opened[index] = replace(source, lengths=lengths, grain=grain)
    join_lengths(opened)
    return opened


@contextmanager
def find_site(cluster: Any) -> Iterator[tuple[Site, Any]]:
    """Yield the site to plan for, and the handle of its cluster if it has one."""
    machine = read_machine()
    with ExitStack() as stack:
        handle = None
        if cluster is None or cluster is True:
            from barrow.sites.attached import find_client

            cluster = find_client()
        if cluster is not None and cluster is not False:
            from barrow.sites.attached import attach
            from barrow.sites.cluster import Cluster

            is_handle = isinstance(cluster, Cluster)
            handle = cluster if is_handle else stack.enter_context(attach(cluster))
        if handle is None:
            yield Site("process", machine), None
        else:
            handle.wait(1)
            yield handle.site(), handle


def fuse(step: Step, inputs: Sequence[Source]) -> Source:
    """Return a step on its inputs as a source, after learning what it returns."""
    lengths = join_lengths(inputs)
    step = step.resolved(lengths)
    if step.combine is None:
        form = recall_form(step, inputs)
        if form is None:
            with doubting(*inputs):
                form = learn_form(step, inputs)
            keep_form(step, inputs, form)
        return apply_step(step, inputs, form)
    whole = frozenset(str(dim) for dim in step.whole)
    form = Form(lengths, inputs[0].dtype, frozenset(lengths), whole)
    return apply_step(step, inputs, form)


def plan_target(
    target: Source,
    site: Site,
    options: Mapping[str, Any],
    *,
    held_bytes: int = 0,
    least: Mapping[str, int] | None = None,
    read_seconds_per_byte: float | None = None,
    wants_store: bool = False,
) -> Plan:
    """Return the plan for a chain of steps, after measuring it if its cost is not known.

    Parameters
    ----------
    held_bytes
        Memory that the result of an earlier stage takes meanwhile.
    least
        How long chunks should be at least.
    read_seconds_per_byte
        Where it is known, and cannot be measured yet.
    wants_store
        Whether the result is stored although nobody gave it a place.
    """
    known = _measure(target, site, options)
    cost = known.cost
    if read_seconds_per_byte is not None:
        cost = replace(cost, read_seconds_per_byte=read_seconds_per_byte)
    made = make_plan(
        target,
        cost=cost,
        site=site,
        memory_bytes=find_memory(site, options, held_bytes),
        wants_store=wants_store or options.get("to") is not None,
        may_be_parallel=options.get("cluster") is not False,
        least=least,
    )
    reasons = (*made.reasons, *known.reasons)
    return replace(made, options=options, reasons=reasons, cost_key=known.key)


def find_memory(site: Site, options: Mapping[str, Any], held_bytes: int = 0) -> int | None:
    """Return the memory that the user allows, less what is held; None for the usual share."""
    memory = options.get("memory")
    if memory is None and not held_bytes:
        return None
    allowed = int(MEMORY_SHARE * site.machine.available_bytes)
    return max(1, (allowed if memory is None else parse_bytes(memory)) - held_bytes)


@contextmanager
def fenced(name: str, site: Site, options: Mapping[str, Any]) -> Iterator[None]:
    """Try a function out with no more memory than its run may use; else one error."""
    allowed = find_memory(site, options) or int(MEMORY_SHARE * site.machine.available_bytes)
    try:
        with FENCE.around(allowed):
            yield
    except BudgetError:
        raise
    except MemoryError as error:
        raise BudgetError(
            f"'{name}' needs more than the {format_bytes(allowed)} that this run may use, already "
            f"for a small block of the data: {str(error) or 'its memory was refused'}.\n"
            "Allow more (memory=), or use a machine that has more."
        ) from error


@dataclass(frozen=True)
class _Known:
    """A cost, and where it comes from."""

    cost: Cost
    key: str | None = None
    reasons: tuple[str, ...] = ()


def _measure(target: Source, site: Site, options: Mapping[str, Any]) -> _Known:
    """Return the cost of a chain of steps, measured at the sizes at which it may work."""
    site = place(site, target)
    at_most = count_here(asked_by(target), site.machine.cores)
    if at_most is not None:
        # Measured as it will run: never more of them at once.
        cores = max(1, min(site.machine.cores, at_most))
        site = replace(site, machine=replace(site.machine, cores=cores))
    total_items = count_items(target, target.everything)
    itemsize = max(target.dtype.itemsize, *(leaf.dtype.itemsize for leaf in leaves(target)))
    if total_items * itemsize <= TINY_BYTES or 0 in target.shape:
        return _Known(Cost(peak_per_item=8.0 * itemsize))
    cores = site.machine.cores
    memory = options.get("memory")
    available = site.machine.available_bytes if memory is None else parse_bytes(memory)
    budget_bytes = site.limit_bytes or available // cores
    is_stored = options.get("to") is not None or target.nbytes > available // 2
    question = ask_cost(
        target, site, total_items=total_items, budget_bytes=budget_bytes, is_stored=is_stored
    )
    entry = question.recall()
    if entry is not None and entry.cost is not None:
        return _Known(entry.cost, question.key, (describe_source_of(entry),))
    may_fail = options.get("on_error") == "skip"
    samples = choose_samples(target, _small_rungs(target, available // cores))
    with doubting(target, key=question.key), fenced(target.name, site, options):
        cost = measure_cost(
            target,
            samples,
            total_items=total_items,
            cores=cores,
            budget_bytes=budget_bytes,
            is_stored=is_stored,
            may_fail=may_fail,
            library_threads=int(asked_by(target).get(THREADS, 1)),
        )
    if not may_fail:  # else it may have been measured where the function fails
        question.keep(cost)
    return _Known(cost, question.key)


def _small_rungs(target: Source, budget_bytes: int) -> list[dict[str, int]]:
    """Return the chunks that can be measured without taking more than a run may."""

    def size(rung: Mapping[str, int]) -> int:
        return count_block_bytes(target, block_at(target, rung, 0.5))

    rungs = list_rungs(target)
    if (first := size(rungs[0])) > LARGE_GRAIN_BYTES:
        # What was read beyond the block is known, so parts of storage chunks tell the time as well.
        parts = list_rungs(replace(target, grain={}))
        rungs = [*(rung for rung in parts if size(rung) < first), *rungs]
    return [rung for rung in rungs if size(rung) <= SAMPLE_SHARE * budget_bytes] or rungs[:1]


def is_worth_fusing(target: Source, longer: Source, site: Site, options: Mapping[str, Any]) -> bool:
    """Return whether a further step leaves the data as easy to cut as they were."""
    lost = set(cuttable_dims(target)) - set(cuttable_dims(longer))
    # A task may have to read everything: not only what lies between, but all that it is made of.
    largest = max(target.nbytes, count_block_bytes(target, target.everything))
    memory = find_memory(site, options) or site.machine.available_bytes
    return not lost or largest < min(FUSED_BYTES, FUSED_SHARE * memory)
