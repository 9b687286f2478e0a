"""Workers that have too little to do, too much, or never came."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from barrow.diagnosing.facts import Facts
from barrow.diagnosing.rules.chunks import UNEVEN, measure_tail, size_of, too_large
from barrow.diagnosing.rules.room import spare_workers
from barrow.model.finding import Finding, Severity
from barrow.units import format_count, format_seconds

MEASURABLE_SECONDS = 0.03
WAITING_SHARE = 0.25
FEW_TASKS = 8
SLOWER, LATER_SECONDS = 5.0, 1.0
SLOW_MACHINE = 2.0
IDLE_SHARE = 0.4
NOBODY_SECONDS, LATE_SECONDS = 5.0, 30.0
CAME_AGAIN = 3
LONG_SECONDS = 10.0
AT_WORK = 0.2


def uneven_load(facts: Facts) -> Iterator[Finding]:
    """WRK01: some workers have a queue while others have nothing to do."""
    own = facts.workers[facts.workers["kind"] == "worker"]
    if facts.is_own or len(own) < 2 or len(facts.ran) < 4 * len(own):
        return
    if facts.ran["compute_seconds"].mean() < MEASURABLE_SECONDS or _find_slow_worker(facts):
        return
    load = facts.ran.groupby("worker")["compute_seconds"].sum().reindex(own.index).fillna(0)
    load = load / own["threads"]
    waited = facts.lost_seconds["overhead"] / max(1e-9, facts.slots * facts.active_seconds)
    saves = float(load.max() - load.mean())
    if waited < WAITING_SHARE or saves < 0.25 * facts.active_seconds:
        return
    most, least = str(load.idxmax()), str(load.idxmin())
    yield Finding(
        "WRK01",
        facts.weigh(saves),
        f"The load is uneven: {facts.label(most)} computed for {format_seconds(load.max())} while "
        f"{facts.label(least)} did so for {format_seconds(load.min())} and tasks were waiting.",
        (
            f"seconds of computing for each thread: {', '.join(f'{v:.1f}' for v in load.head(8))}",
            f"{waited:.0%} of the workers' time they were free though a task was ready",
        ),
        "Let tasks go where there is room: no workers= in submit, "
        "dask.config.set({'distributed.scheduler.work-stealing': True}), scatter(broadcast=True).",
        saves_seconds=saves,
        remedy="steal",
    )


def stragglers(facts: Facts) -> Iterator[Finding]:
    """WRK02: a few tasks take far longer than their like: a slow machine, or heavy data?"""
    slow = _find_slow_worker(facts)
    if slow:
        step, process, ratio, saves = slow
        yield Finding(
            "WRK02",
            facts.weigh(saves),
            f"{facts.label(process).capitalize()} is slow: '{step}' takes {ratio:.1f} times as "
            "long there as on the others. It is the machine, not the data.",
            (f"median on it {ratio:.1f} times that of all others, over all its tasks",),
            "See what else runs on that machine; until then leave it out: "
            f"client.retire_workers(['{facts.processes.at[process, 'address']}'])",
            saves_seconds=saves,
            remedy="drain",
        )
        return
    for step, row in facts.steps.head(5).iterrows():
        tasks = facts.ran[facts.ran["step"] == step]
        if len(tasks) < FEW_TASKS:
            continue
        median, longest = row["median_seconds"], row["longest_seconds"]
        late = tasks[tasks["compute_seconds"] > max(SLOWER * median, median + LATER_SECONDS)]
        tail = measure_tail(facts, tasks)
        sizes = size_of(tasks)
        is_size = sizes.median() > 0 and sizes.max() > UNEVEN * sizes.median()
        # The first task of each worker imports and compiles.
        firsts = tasks.groupby("worker")["began"].idxmin()
        late = late.drop(index=[i for i in firsts if i in late.index])
        if late.empty or len(late) > 0.2 * len(tasks) or is_size or tail < 0.5:
            continue
        worst = late.loc[late["compute_seconds"].idxmax()]
        yield Finding(
            "WRK02",
            facts.weigh(tail),
            f"{format_count(len(late), 'task')} of '{step}' took {longest / median:.0f} times as "
            f"long as the others: the data in {worst['key']} are heavier, not the machine slower.",
            (
                f"median {format_seconds(median)}, longest {format_seconds(longest)} on "
                f"{facts.label(str(worst['worker']))}, whose other tasks are like all others",
                f"at the end others waited {format_seconds(tail)}",
            ),
            f"Cut the heavy chunk of '{step}' smaller, or submit it first "
            "(dask.annotate(priority=10)).",
            saves_seconds=tail,
            remedy="split",
        )
        return


def idle(facts: Facts) -> Iterator[Finding]:
    """WRK03: there is not enough to do at once for all workers."""
    room = facts.slots * facts.active_seconds
    share = facts.lost_seconds["idle"] / max(1e-9, room)
    if facts.slots < 2 or share < IDLE_SHARE or facts.active_seconds < 2 or facts.steps.empty:
        return
    # Each of these says the same, and why.
    if any(next(rule(facts), None) for rule in (too_large, stragglers, spare_workers)):
        return
    step = str(facts.steps.index[0])
    yield Finding(
        "WRK03",
        "note",
        f"There was too little to do at once: while work went on, {share:.0%} of the time of "
        f"{format_count(facts.slots, 'thread')} was spent waiting for the next task.",
        (f"{format_seconds(facts.lost_seconds['idle'])} idle; the longest step is '{step}'",),
        f"Cut '{step}' into more independent pieces, hand in several graphs at once "
        "(dask.compute(a, b)), or use fewer workers.",
    )


def never_came(facts: Facts) -> Iterator[Finding]:
    """WRK04: tasks waited, and no worker came that could do them."""
    for details in reversed(list(facts.happened("stalled")["details"])):
        can_work = [worker for worker in details["workers"] if worker["status"] == "running"]
        # Workers that could take the tasks and have not begun are only slow: they import.
        is_barred = bool(can_work and details.get("unrunnable"))
        if details["seconds"] < NOBODY_SECONDS or (details["n_workers"] and not is_barred):
            continue
        until = details["since"] + details["seconds"]
        went_on = bool((facts.tasks["ended"] > until).any())
        # Tasks may well be handed in before the workers are there.
        severity: Severity = "warning" if details["seconds"] > LATE_SECONDS else "note"
        if facts.is_over and not went_on:
            severity = "failure"
        waited, n = format_seconds(details["seconds"]), int(details["waiting"])
        if details["n_workers"]:
            claim = (
                f"{format_count(n, 'task')} waited for {waited}: none of "
                f"{format_count(details['n_workers'], 'worker')} offers what they ask for."
            )
            advice = (
                "Compare resources= and workers= of the tasks with what the workers offer: "
                "client.scheduler_info()['workers']"
            )
        else:
            claim = f"{format_count(n, 'task')} waited for {waited}, and no worker came."
            advice = (
                "See the logs of the workers or of the queue; "
                "client.wait_for_workers(1, timeout=60) says so sooner."
            )
        yield Finding(
            "WRK04",
            severity,
            claim,
            (f"workers: {details['n_workers']}; tasks waiting: {n}; for {waited}",),
            advice,
            saves_seconds=float(details["seconds"]) if went_on else 0.0,
        )
        return


def thrashing(facts: Facts) -> Iterator[Finding]:
    """WRK05: workers are sent away and started again."""
    tasks_end = facts.tasks["ended"].max() if len(facts.tasks) else facts.last
    moves = facts.happened("joined", "left")
    moves = moves[moves["time"] < tasks_end]
    left = moves[moves["kind"] == "left"]
    if facts.is_own or left.empty:
        return
    again = moves[(moves["kind"] == "joined") & (moves["time"] > left["time"].min())]
    if len(again) < CAME_AGAIN or len(left) < CAME_AGAIN:
        return
    starts = [_start_seconds(facts, name) for name in again["process"]]
    seconds = float(np.nansum(starts))
    yield Finding(
        "WRK05",
        facts.weigh(seconds / 2),
        f"Autoscaling goes to and fro: {format_count(len(left), 'worker')} were sent away and "
        f"{len(again)} started again while there was work to come.",
        (
            f"starting them took {format_seconds(seconds)} in all",
            f"joined {int((moves['kind'] == 'joined').sum())}, left {len(left)}, within "
            f"{format_seconds(facts.seconds)}",
        ),
        "cluster.adapt(minimum=..., maximum=..., wait_count=30, interval='2s') keeps them longer; "
        "cluster.scale(n) keeps them for good.",
        saves_seconds=seconds / 2,
    )


def long_task(facts: Facts) -> Iterator[Finding]:
    """WRK07: a task runs for long: is it at work, or does it wait for something?"""
    found = facts.happened("long")
    if found.empty or facts.is_over:
        return
    details = found["details"].iloc[-1]
    process = str(found["process"].iloc[-1])
    if details["elapsed"] < LONG_SECONDS or bool(
        ((facts.tasks["key"] == details["key"]) & (facts.tasks["ended"] > details["since"])).any()
    ):
        return
    wanted = _measure_wanted(facts, process, details, float(found["time"].iloc[-1]))
    if wanted != wanted:
        return
    is_at_work = wanted > AT_WORK
    verdict = "it computes: slow, not stuck" if is_at_work else "it waits for something, or hangs"
    yield Finding(
        "WRK07",
        "note",
        f"'{details['step']}' has run on {facts.label(process)} for "
        f"{format_seconds(details['elapsed'])}: {verdict}.",
        (f"meanwhile it wanted {min(1.0, wanted):.0%} of a core",),
        "Wait; it will end."
        if is_at_work
        else f"client.call_stack(keys=[{details['key']!r}]) shows where it waits.",
    )


def _measure_wanted(facts: Facts, process: str, details: Mapping[str, Any], until: float) -> float:
    """Return the share of a core that a task used or waited for; NaN if nobody knows.

    What it used alone does not tell: where others have the cores, one that computes gets little.
    """
    if (wanted := details.get("wanted")) is not None:
        return float(wanted)
    seconds = float(details["elapsed"])
    return facts.used_cpu(process, until - seconds, until) / seconds


def _find_slow_worker(facts: Facts) -> tuple[str, str, float, float] | None:
    """Return step, worker, how many times slower, and what that cost; None if none is slow."""
    for step in facts.steps.index[:5]:
        tasks = facts.ran[facts.ran["step"] == step]
        medians = tasks.groupby("worker")["compute_seconds"].agg(["median", "size", "sum"])
        medians = medians[medians["size"] >= 3]
        if len(medians) < 2 or medians["median"].max() < 0.1:
            continue
        slow = str(medians["median"].idxmax())
        others = float(tasks[tasks["worker"] != slow]["compute_seconds"].median())
        ratio = float(medians.at[slow, "median"]) / max(1e-9, others)
        # All of its tasks are slow, or it is the data.
        quickest = float(tasks[tasks["worker"] == slow]["compute_seconds"].quantile(0.25))
        sizes = tasks.groupby("worker")["result_bytes"].median()
        is_data = bool(sizes.get(slow, 0) > 1.5 * sizes.drop(slow).median())
        if ratio > SLOW_MACHINE and quickest > 1.5 * others and not is_data:
            lost = float(medians.at[slow, "sum"]) * (1 - 1 / ratio) / facts.slots
            return str(step), slow, ratio, lost
    return None


def _start_seconds(facts: Facts, process: str) -> float:
    own = facts.samples_of.get(process)
    if own is None or process not in facts.processes.index:
        return float("nan")
    return float(facts.processes.at[process, "joined"] - own["time"].iloc[0])


def start_seconds(facts: Facts) -> pd.Series:
    """Return how long each worker took from its start until it could work."""
    own = facts.workers.index[facts.workers["kind"] == "worker"]
    return pd.Series({name: _start_seconds(facts, str(name)) for name in own}, dtype=float)
