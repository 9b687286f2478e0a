"""Steps one after the other: fused where they can be cut alike, in stages where not.

Between two stages lies a checkpoint, in memory or in a store whose chunks suit
both the writer and the reader. All stages are planned before the first one runs;
what they read does not exist yet, so a stand-in is measured in its place.
"""

import shutil
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from barrow.composing import fenced, find_memory, fuse, is_worth_fusing, plan_target
from barrow.errors import InputError, SkippedWarning
from barrow.executing import discard, execute
from barrow.model.applied import Apply, apply_step, graft, kept_dims, leaves
from barrow.model.plan import Plan
from barrow.model.reading import block_at
from barrow.model.run import Run
from barrow.model.site import Site
from barrow.model.source import Labels, Source
from barrow.model.step import Step
from barrow.planning.candidates import cuttable_dims, list_rungs
from barrow.planning.layout import MEMORY_SHARE
from barrow.planning.planner import is_stored
from barrow.planning.reuse import Here, join_misfits, reuse_plan
from barrow.planning.stored import READER_BYTES, choose_between, divides, least_chunk
from barrow.presenting import open_values
from barrow.probing.probe import TooMuchError
from barrow.probing.stand_in import make_stand_in
from barrow.probing.writing import measure_loading
from barrow.running.folders import RunFolder, checkpoint_folder, find_result
from barrow.running.saved_call import Call, describe_going_on
from barrow.sources.opening import open_source
from barrow.units import format_count

# Of the memory for one task, what a task may hold of a checkpoint: the rest is for its answer.
READER_SHARE = 0.125

# A stage that takes longer is not done again after an interruption, also if it fits the memory.
LONG_STAGE_SECONDS = 10.0

# Whether a step, by its number, goes with the steps so far: these, and these with it.
IsFused = Callable[[int, Source, Source], bool]


@dataclass(frozen=True)
class _Chain:
    """Steps cut into stages, each a source that reads a stand-in for the stage before."""

    stages: tuple[Source, ...]
    origins: tuple[Source, ...]
    """Of each stage, all steps up to its end on the data themselves: its result is known by it."""


def plan_pipeline(
    steps: Sequence[Step], inputs: Sequence[Source], site: Site, options: Mapping[str, Any]
) -> Plan:
    """Return the plan for steps: one stage, or several."""

    def is_fused(_: int, target: Source, longer: Source) -> bool:
        return is_worth_fusing(target, longer, site, options)

    with fenced(steps[0].name, site, options):
        chain = _cut(steps, inputs, is_fused, _reader_bytes(site, options))
    plans: list[Plan] = []
    for number, target in enumerate(chain.stages):
        following = chain.stages[number + 1 : number + 2]
        cuts = cuttable_dims(following[0]) if following else None
        rate = None
        if plans:
            target = graft(target, replace(leaves(target)[0], grain=plans[-1].stored_chunks))
            rate = _measure_reading(plans[-1], leaves(target)[0])
        chosen = options if cuts is None else _options_between(options, chain.origins[number])
        plans.append(_plan_stage(target, site, chosen, cuts, _held(plans), rate))
    return _join(plans, chain)


def plan_alike(
    steps: Sequence[Step],
    inputs: Sequence[Source],
    site: Site,
    options: Mapping[str, Any],
    like: Plan,
) -> Plan:
    """Return the plan for steps with chunks, workers and cost of another plan."""
    names = [step.name for step in steps]
    planned = [name for stage in like.stages for name in stage.steps]
    if names != planned:
        text = f"it is for the steps {planned}, but these are {names}"
        raise InputError(join_misfits(like, [text]))
    starts = set(np.cumsum([len(stage.steps) for stage in like.stages]))
    most_bytes = _reader_bytes(site, options)
    with fenced(steps[0].name, site, options):
        chain = _cut(steps, inputs, lambda number, *_: number not in starts, most_bytes)
    plans: list[Plan] = []
    for number, (stage, target) in enumerate(zip(like.stages, chain.stages, strict=True)):
        following = chain.stages[number + 1 : number + 2]
        if plans:
            target = graft(target, replace(leaves(target)[0], grain=plans[-1].stored_chunks))
        chosen = _options_between(options, chain.origins[number]) if following else options
        here = Here(
            site,
            find_memory(site, options),
            _held(plans),
            reader_cuts=cuttable_dims(following[0]) if following else None,
            reader_bytes=most_bytes,
            wants_store=chosen.get("to") is not None,
            may_be_parallel=options.get("cluster") is not False,
        )
        plans.append(replace(reuse_plan(stage, target, here), options=chosen))
    return _join(plans, chain)


def run_pipeline(plan: Plan, site: Site, handle: Any, call: Call | None = None) -> Run:
    """Run all stages of a plan; say so if its result has gaps, or how it can be taken up.

    Parameters
    ----------
    call
        What the plan was made for, if it is the call of an earlier run.
    """
    try:
        run = _run_stages(plan, site, handle, call)
    except (KeyboardInterrupt, SystemExit) as error:
        _say_goodbye(error, plan.options)
        raise
    if run.skipped:
        warnings.warn(
            f"{format_count(len(run.skipped), 'chunk')} could not be computed: the result holds "
            f"NaN there, or 0 where its dtype has no NaN. The first: {run.skipped[0]}\n"
            "barrow.run(...).skipped lists all.",
            SkippedWarning,
            stacklevel=4,  # the line of the user's that called barrow.map or the like
        )
    return run


def _say_goodbye(error: BaseException, options: Mapping[str, Any]) -> None:
    """Tell how to go on: where the error is shown, and here for those who never see it."""
    to = options.get("to")
    may_resume = options.get("resume", True)
    hint = None if to is None else describe_going_on(to, may_resume=may_resume)
    if hint is not None:
        error.add_note(hint)
        if not options.get("quiet"):
            print(hint, file=sys.stderr, flush=True)


def _run_stages(plan: Plan, site: Site, handle: Any, call: Call | None) -> Run:
    """Run all stages; what lies between them is removed as soon as it is not needed."""
    to = plan.options.get("to")
    if not plan.before or (to is not None and find_result(to) is not None):
        return execute(plan, handle, call=call)
    checkpoint: Run | None = None
    done: list[Plan] = []
    # With a place for the result, what lies between outlives an interruption.
    kept = None if to is None else checkpoint_folder(to)
    if kept is not None:
        call = call or Call.of(plan)
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        call.save(RunFolder(kept, kept))
    try:
        for number, stage in enumerate(plan.stages):
            following = plan.stages[number + 1 : number + 2]
            cuts = following[0].cuttable if following else None
            ready, part = _settle(stage, checkpoint, site, cuts), call
            if cuts is None:
                ready = replace(ready, before=tuple(done))
            elif kept is not None and ready.result == "store":
                ready, part = _keep(ready, kept / f"{number}.zarr")
            # The plan that is kept must not hold the checkpoint it has read.
            run = execute(ready, handle, stage.target, checkpoint, part)
            done.append(run.plan)
            if checkpoint is not None:
                discard(checkpoint)
            checkpoint = run if following else None
    finally:
        if checkpoint is not None:
            discard(checkpoint)
    if kept is not None:
        shutil.rmtree(kept, ignore_errors=True)
    return run


def _keep(stage: Plan, place: Path) -> tuple[Plan, Call]:
    """Return a stage with a place for its result, where one of other work is not in the way."""
    call = replace(Call.of(stage), is_stage=True)
    found = find_result(place)
    if found is not None and (
        found.read_key() != call.key or not stage.options.get("resume", True)
    ):
        shutil.rmtree(place)
    if call.key is not None:
        stage = replace(stage, options={**stage.options, "to": place})
    return stage, call


def _cut(
    steps: Sequence[Step], inputs: Sequence[Source], is_fused: IsFused, most_bytes: int
) -> _Chain:
    """Fuse steps into stages; nothing large is computed to find out how."""
    stages: list[Source] = []
    origins: list[Source] = []
    target = origin = fuse(steps[0], inputs)
    for number, step in enumerate(steps[1:], start=1):
        stand_in = cache(_StandInOf(target, most_bytes))
        try:
            longer = fuse(step, [target])
        except TooMuchError:
            longer = _move(fuse(step, [stand_in()]), target)
        if is_fused(number, target, longer):
            target = longer
        else:
            stages.append(target)
            origins.append(origin)
            target = _move(longer, stand_in())
        origin = _move(longer, origin)
    return _Chain((*stages, target), (*origins, origin))


@dataclass(frozen=True)
class _StandInOf:
    """Makes the stand-in for a result when it is needed."""

    target: Source
    most_bytes: int

    def __call__(self) -> Source:
        target = self.target
        return make_stand_in(
            target,
            [*list_rungs(replace(target, grain={})), *list_rungs(target)],
            cuttable=cuttable_dims(target),
            labels=_labels_of(target),
            most_bytes=self.most_bytes,
        )


def _move(longer: Source, source: Source) -> Source:
    """Return the last step of a chain on another source."""
    assert isinstance(longer.read, Apply)
    return apply_step(longer.read.step, [source], longer.read.form)


def _plan_stage(
    target: Source,
    site: Site,
    options: Mapping[str, Any],
    reader_cuts: Collection[str] | None,
    held_bytes: int,
    read_seconds_per_byte: float | None = None,
) -> Plan:
    """Return the plan of one stage; ``reader_cuts`` is None for the last one."""

    def plan_it(wants_store: bool) -> Plan:
        least: Mapping[str, int] = {}
        if reader_cuts is not None and wants_store:
            least = least_chunk(
                target.lengths,
                writer_cuts=cuttable_dims(target),
                reader_cuts=reader_cuts,
                itemsize=target.dtype.itemsize,
                reader_bytes=_reader_bytes(site, options),
            )
        return plan_target(
            target,
            site,
            options,
            held_bytes=held_bytes,
            least=least,
            read_seconds_per_byte=read_seconds_per_byte,
            wants_store=wants_store,
        )

    made = plan_it(is_stored(target, site, find_memory(site, options, held_bytes)))
    if made.result == "memory" and options.get("is_kept") and made.seconds > LONG_STAGE_SECONDS:
        made = plan_it(wants_store=True)
        reason = "it takes long enough that its result is kept for a run that is interrupted"
        made = replace(made, reasons=(*made.reasons, reason))
    if reader_cuts is not None:
        lost = ", ".join(repr(dim) for dim in made.cuttable if dim not in reader_cuts)
        reason = f"the next stage needs {lost} whole, so the result is kept for it"
        made = replace(made, reasons=(*made.reasons, reason))
        if made.result == "store":
            made = replace(made, stored_chunks=_choose_stored(made, site, reader_cuts))
    return replace(
        made, options={**options, "planned": replace(made, target=None, options={}, before=())}
    )


def _settle(stage: Plan, last: Run | None, site: Site, cuts: Collection[str] | None) -> Plan:
    """Return a stage ready to run: on the checkpoint, and planned again unless it was edited."""
    ready = stage
    if last is not None:
        assert stage.target is not None
        ready = replace(stage, target=graft(stage.target, _open_checkpoint(last)))
        # Chunks that somebody asked for stay, also if they are those that were planned.
        is_free = stage.options.get("may_resize", True)
        if is_free and stage.options.get("planned") == replace(stage, before=()):
            assert ready.target is not None
            ready = _plan_stage(ready.target, site, stage.options, cuts, _held([last.plan]))
    if ready.result == "store" and cuts is not None:
        stored = ready.stored_chunks
        if not stored or not divides(stored, ready.chunks, ready.lengths):
            ready = replace(ready, stored_chunks=_choose_stored(ready, site, cuts))
    return ready


def _choose_stored(plan: Plan, site: Site, cuts: Collection[str]) -> dict[str, int]:
    return choose_between(
        plan.grid.chunk,
        lengths=plan.lengths,
        reader_cuts=cuts,
        itemsize=np.dtype(plan.dtype).itemsize,
        reader_bytes=_reader_bytes(site, plan.options),
    )


def _reader_bytes(site: Site, options: Mapping[str, Any]) -> int:
    memory = find_memory(site, options) or int(MEMORY_SHARE * site.machine.available_bytes)
    return max(1, min(READER_BYTES, int(READER_SHARE * memory / site.machine.cores)))


def _join(plans: Sequence[Plan], chain: _Chain) -> Plan:
    last = plans[-1]
    if len(plans) == 1:
        return last
    origin = chain.origins[-1]
    return replace(last, before=tuple(plans[:-1]), options={**last.options, "origin": origin})


def _options_between(options: Mapping[str, Any], origin: Source) -> dict[str, Any]:
    """Return the options of a stage before the last."""
    names = ("quiet", "memory", "cluster", "on_error", "resume")
    return {
        **{name: options.get(name) for name in names if name in options},
        "origin": origin,
        "is_kept": options.get("to") is not None,
    }


def _held(plans: Sequence[Plan]) -> int:
    """Return the memory that the last checkpoint takes while it is read."""
    return plans[-1].result_bytes if plans and plans[-1].result == "memory" else 0


def _measure_reading(before: Plan, stand_in: Source) -> float | None:
    """Return the seconds for each byte of a checkpoint; None if it will be in memory."""
    if before.result != "store" or not before.cost.is_measured:
        return None
    return measure_loading(stand_in.read(block_at(stand_in, before.stored_chunks, 0.5)))


def _open_checkpoint(run: Run) -> Source:
    target = run.plan.target
    assert target is not None
    opened = open_source(open_values(run), dims=target.dims)
    return replace(opened, name=target.name, labels=_labels_of(target), has_names=target.has_names)


def _labels_of(target: Source) -> Labels | None:
    """Return the labels that the result of a chain of steps will have."""
    if target.labels is None:
        return None
    from barrow.sources.labelled import put_labels

    empty = np.broadcast_to(np.zeros((), target.dtype), target.shape)
    return open_source(put_labels(empty, target.lengths, kept_dims(target), target.labels)).labels
