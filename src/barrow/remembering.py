"""What earlier runs have taught, and what this one teaches those to come.

Joins the history with what is asked of it: keys, the trust in an old measurement,
and the correction after a run. Without a history all of it does nothing.
"""

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from barrow.errors import StepError
from barrow.model.applied import Apply, Form, apply_step, join_lengths
from barrow.model.cost import Cost
from barrow.model.plan import Plan
from barrow.model.reading import block_at, count_items, count_stored_bytes
from barrow.model.site import THREADS, Machine, Site
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.places import history_file
from barrow.planning.candidates import cuttable_dims
from barrow.planning.chunks import count_chunks
from barrow.planning.layout import slowdown_of
from barrow.planning.placement import asked_by
from barrow.planning.refining import Measured, refine
from barrow.probing.costs import LONG_WORK_SECONDS, SHORT_WORK_SECONDS
from barrow.probing.history import FORMAT, Entry, History
from barrow.running.fingerprint import kind_of_work
from barrow.units import format_count

# A measurement for less work, or for more memory, than this many times is made again.
TRUST = 2.0
# The first run counts as much as the measurement, later ones less, but never less than this.
LEAST_WEIGHT = 0.2
# A run with less computing than this teaches nothing.
LEAST_SECONDS = 0.001
# Nor one of which so much went into imports and compilation.
MOST_STARTUP = 0.1


@dataclass(frozen=True)
class Question:
    """A cost that may be known: what is asked for, and for how much work."""

    key: str | None
    total_items: int
    budget_bytes: int

    def recall(self) -> Entry | None:
        """Return what is known, if it was measured carefully enough for this work."""
        history = _history()
        entry = history.find(self.key) if history and self.key else None
        if entry is None or entry.cost is None or not entry.cost.is_measured:
            return None
        is_short = entry.cost.seconds(self.total_items) < SHORT_WORK_SECONDS
        if entry.work_seconds < LONG_WORK_SECONDS and (
            (self.total_items > TRUST * entry.work_items and not is_short)
            or entry.budget_bytes > TRUST * self.budget_bytes
        ):
            return None
        return entry

    def keep(self, cost: Cost) -> None:
        """Remember what was measured."""
        history = _history()
        if history and self.key and cost.is_measured:
            entry = Entry(
                cost=replace(cost, probing_seconds=0.0),
                work_items=self.total_items,
                work_seconds=cost.seconds(self.total_items),
                budget_bytes=self.budget_bytes,
            )
            history.keep(self.key, entry)


def ask_cost(
    target: Source, site: Site, *, total_items: int, budget_bytes: int, is_stored: bool
) -> Question:
    """Return the question what a chain of steps costs at a site."""
    key = None
    if _history() is not None:
        facts: tuple[Any, ...] = ("cost", *_describe(site.machine), site.is_local, is_stored)
        if threads := asked_by(target).get(THREADS):
            facts = (*facts, threads)
        key = kind_of_work(target, facts, cuttable=cuttable_dims(target))
    return Question(key, total_items, budget_bytes)


def describe_source_of(entry: Entry) -> str:
    """Return in words where a remembered cost comes from."""
    if not entry.runs:
        return "nothing was measured: the cost is known from an earlier measurement"
    return f"nothing was measured: the cost is known from {format_count(entry.runs, 'earlier run')}"


def recall_form(step: Step, inputs: Sequence[Source]) -> Form | None:
    """Return what a step is known to make of inputs of these lengths."""
    history = _history()
    key = _form_key(step, inputs) if history else None
    entry = history.find(key) if history and key else None
    form = entry.form if entry else None
    if form is None:
        return None
    lengths = join_lengths(inputs)
    is_fitting = form.whole <= set(lengths) and all(
        form.lengths[d] == lengths.get(d) for d in form.kept
    )
    return form if is_fitting else None


def keep_form(step: Step, inputs: Sequence[Source], form: Form) -> None:
    """Remember what a step makes of its inputs, unless other values might change it."""
    # The length of a new dimension may depend on the values, as that of np.unique does.
    if set(form.lengths) != form.kept:
        return
    history = _history()
    key = _form_key(step, inputs) if history else None
    if history and key:
        history.keep(key, Entry(form=form))


@contextmanager
def doubting(*sources: Source, key: str | None = None) -> Iterator[None]:
    """Forget what is known of chains of steps if an answer turns out to have another form."""
    try:
        yield
    except StepError:
        history = _history()
        keys = [key, *(found for source in sources for found in _form_keys(source))]
        for wrong in keys if history else ():
            if history and wrong:
                history.forget(wrong)
        raise


def learn_from(plan: Plan, chunks_found: int, totals: dict[str, float]) -> None:
    """Correct what is known of a cost by what a run really took.

    Parameters
    ----------
    chunks_found
        Those that an earlier run had done already.
    totals
        Sums over all chunks, from the record.
    """
    history, key = _history(), plan.cost_key
    if history is None or key is None or chunks_found or not plan.cost.is_measured:
        return
    if totals["chunks"] != plan.n_chunks:
        return  # they were not the chunks of the plan
    startup = plan.cost.startup_seconds * plan.slots
    computed = totals["compute_seconds"]
    if computed < LEAST_SECONDS or startup > MOST_STARTUP * computed:
        return
    entry = history.find(key)
    if entry is None or entry.cost is None:
        return
    weight = max(LEAST_WEIGHT, 1 / (entry.runs + 2))
    cost = refine(entry.cost, mean_task(plan, totals), weight)
    history.keep(key, replace(entry, cost=cost, runs=entry.runs + 1))


def mean_task(plan: Plan, totals: dict[str, float]) -> Measured:
    """Return the mean task of a run, from the sums over all its chunks."""
    target = plan.target
    assert target is not None
    chunk = plan.grid.chunk
    n_chunks = max(1, int(totals["chunks"]))
    # Chunks at the end of the data are smaller than the others.
    fill = prod(plan.lengths.values()) / max(1, prod(chunk.values()) * plan.n_chunks)
    step = dict(plan.strides) or chunk
    items = max(1, round(fill * count_items(target, block_at(target, step, 0.5))))
    return Measured(
        items=items,
        calls=count_chunks(chunk, step),
        slowdown=slowdown_of(plan, items),
        compute_seconds=totals["compute_seconds"] / n_chunks,
        read_seconds=totals["read_seconds"] / n_chunks,
        stored_bytes=round(fill * count_stored_bytes(target, block_at(target, chunk, 0.5))),
        write_seconds=totals["write_seconds"] / n_chunks,
        written_bytes=int(totals["written_bytes"] / n_chunks),
    )


def _history() -> History | None:
    path = history_file()
    return None if path is None else History(path)


def _describe(machine: Machine) -> tuple[object, ...]:
    return (
        FORMAT,
        machine.host,
        machine.cores,
        machine.processor,
        platform.python_version(),
        np.__version__,
    )


def _form_key(step: Step, inputs: Sequence[Source]) -> str | None:
    unknown = Form({}, inputs[0].dtype, frozenset(), frozenset())
    facts = ("form", FORMAT, step.name, platform.python_version(), np.__version__)
    return kind_of_work(apply_step(step, inputs, unknown), facts)


def _form_keys(source: Source) -> Iterator[str | None]:
    if isinstance(source.read, Apply):
        yield _form_key(source.read.step, source.read.inputs)
        for below in source.read.inputs:
            yield from _form_keys(below)
