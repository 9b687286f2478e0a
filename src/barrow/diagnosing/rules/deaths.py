"""Workers that were killed or stand still: what memory limits do to a run."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from barrow.diagnosing.facts import Facts
from barrow.diagnosing.rules import slurm
from barrow.model.finding import Finding, Severity
from barrow.units import format_bytes, format_count, format_seconds

NEAR_LIMIT = 0.8
NEAR_ALL_MEMORY = 0.85
STUCK_SECONDS = 4.0
SPILLABLE_SHARE = 0.3
"""Of what a worker holds: with more that could go to disk it may go on by itself."""
BY_NANNY = "killed at its memory limit"
BY_SIGNAL = "killed by signal "
LOST = "lost"
"""Nobody there saw how it ended: it ran on another machine, or in a job."""


def killed_for_memory(facts: Facts) -> Iterator[Finding]:
    """MEM02: workers were killed because they held too much."""
    dead = {name: why for name in _find_dead(facts) if (why := explain_kill(facts, name))}
    if not dead:
        return
    worst = max(dead, key=lambda name: _last_held(facts, name))
    steps = name_steps(facts, list(dead))
    limit = facts.limit_of(worst)
    given_up = _count_given_up(facts)
    what = " and ".join(f"'{step}'" for step in steps[:2]) or "an unknown step"
    evidence = [
        f"{facts.label(name)}: {dead[name]}, last seen with {format_bytes(_last_held(facts, name))}"
        for name in list(dead)[:4]
    ]
    if limit == limit:
        evidence.append(f"memory limit of a worker: {format_bytes(limit)}")
    if given_up:
        evidence.append(f"{format_count(given_up, 'task')} given up by Dask (KilledWorker)")
    yield Finding(
        "MEM02",
        "failure" if given_up or facts.run.get("status") == "failed" else "warning",
        f"{format_count(len(dead), 'worker')} ran out of memory while computing {what}.",
        tuple(evidence),
        f"Use smaller chunks for {what} (half as large on each of two dimensions needs a quarter "
        "of the memory), or fewer threads in each worker, or a larger memory_limit.",
        saves_seconds=_redone_seconds(facts),
        remedy="split",
    )


def retried_in_silence(facts: Facts) -> Iterator[Finding]:
    """MEM03: workers died, their work was done again, and the program did not say so."""
    died = facts.happened("lost")
    if died.empty or facts.is_own:
        return
    lost = facts.tasks[facts.tasks["outcome"] == "lost"]
    again = lost[lost["key"].isin(facts.ran["key"])]
    redone = int(sum(details.get("n_recomputed", 0) for details in died["details"]))
    if not (len(again) or redone) or _count_given_up(facts):
        return
    steps = again["step"].value_counts().index
    what = f", most of them '{steps[0]}'" if len(steps) else ""
    seconds = _redone_seconds(facts)
    yield Finding(
        "MEM03",
        "warning",
        f"{format_count(len(died), 'worker')} died, and Dask did again without a word what was "
        f"lost: {format_count(len(again) + redone, 'task')}{what}.",
        (
            f"tasks in hand when a worker died: {len(again)}; results that were lost: {redone}",
            f"computed in vain: {format_seconds(seconds)}",
        ),
        "See why the workers died (the other findings say so if it was memory); "
        "dask.config.set({'distributed.scheduler.allowed-failures': 0}) makes it an error.",
        saves_seconds=seconds / max(1, facts.slots),
    )


def paused_for_ever(facts: Facts) -> Iterator[Finding]:
    """MEM04: a worker holds too much to take tasks, has nothing to give back, and does nothing."""
    stalls = [
        details
        for details in facts.happened("stalled")["details"]
        if details["seconds"] >= STUCK_SECONDS
        and any(_is_stuck(worker) for worker in details["workers"])
    ]
    if not stalls:
        return
    worst = max(stalls, key=lambda details: float(details["seconds"]))
    stuck = [worker for worker in worst["workers"] if _is_stuck(worker)]
    first = max(stuck, key=lambda worker: float(worker["rss"]))
    by_address = {row.address: str(name) for name, row in facts.processes.iterrows()}
    process = by_address.get(first["address"])
    # A worker may be stuck before anybody has noted it.
    unknown = f"worker {first.get('name', first['address'])}"
    who = unknown if process is None else facts.label(process)
    until = worst["since"] + worst["seconds"]
    went_on = bool((facts.tasks["ended"] > until).any())
    yield Finding(
        "MEM04",
        "failure" if facts.is_over and not went_on else "warning",
        f"{who.capitalize()} is paused for its memory and will not go on by itself: "
        f"{format_count(int(worst['waiting']), 'task')} waited and nobody computed.",
        (
            f"for {format_seconds(worst['seconds'])}: {len(stuck)} of {worst['n_workers']} workers "
            "paused, none computing",
            f"it holds {format_bytes(first['rss'])} of {format_bytes(first['limit'])}, of which "
            f"only {format_bytes(first['managed'])} are results that could go to disk",
        ),
        "It is stuck, not slow: client.restart_workers(['" + str(first["address"]) + "']) lets it "
        "go on. So that it does not come back: find what keeps the memory, or use smaller chunks.",
        saves_seconds=float(worst["seconds"]),
        remedy="trim, then restart",
    )


def _is_stuck(worker: Mapping[str, Any]) -> bool:
    is_empty = worker["managed"] < SPILLABLE_SHARE * worker["rss"]
    return bool(worker["status"] == "paused" and not worker["executing"] and is_empty)


def died_otherwise(facts: Facts) -> Iterator[Finding]:
    """WRK06: a worker died, and not for memory as far as can be seen."""
    dead = [name for name in _find_dead(facts) if not explain_kill(facts, name)]
    if slurm.find_said(facts, slurm.OUT_OF_TIME):
        # Its job has ended, and that is said already.
        dead = [name for name in dead if facts.processes.at[name, "reason"] != LOST]
    if not dead:
        return
    steps = name_steps(facts, dead)
    reasons = sorted({str(facts.processes.at[name, "reason"]) for name in dead})
    what = f" while computing '{steps[0]}'" if steps else ""
    severity: Severity = "failure" if _count_given_up(facts) else "warning"
    is_crash = any(reason.endswith((" 11", " 6", " 7", " 4", " 8")) for reason in reasons)
    yield Finding(
        "WRK06",
        severity,
        f"{facts.label(dead[0]).capitalize()} died{what}: {', '.join(reasons)}.",
        tuple(
            f"{facts.label(name)}: {facts.processes.at[name, 'reason']}, last seen with "
            f"{format_bytes(_last_held(facts, name))}"
            for name in dead[:4]
        ),
        "That is a crash in compiled code: run the step alone on one chunk with "
        "python -X faulthandler."
        if is_crash
        else "Somebody or something ended it: look at the system's log, and at that of the queue.",
        saves_seconds=_redone_seconds(facts),
    )


def explain_kill(facts: Facts, process: str) -> str:
    """Return who killed a worker for its memory; empty if it did not die of that."""
    reason = str(facts.processes.at[process, "reason"])
    if reason == BY_NANNY:
        return "killed by its nanny at the memory limit"
    if reason == LOST and slurm.find_said(facts, slurm.OUT_OF_MEMORY):
        return "killed by SLURM: its job used more than its memory"
    if reason == f"{BY_SIGNAL}9":
        at = facts.processes.at[process, "left"]
        near = facts.samples[(facts.samples["time"] - at).abs() < 1.0]
        total = near.groupby("process")["rss_bytes"].max().sum()
        limit = facts.limit_of(process)
        if facts.memory_bytes and total > NEAR_ALL_MEMORY * facts.memory_bytes:
            return "killed by the kernel: the machine had no memory left"
        if limit == limit and _last_held(facts, process) > NEAR_LIMIT * limit:
            return "killed by the kernel or by SLURM (signal 9) close to its memory limit"
    return ""


def name_steps(facts: Facts, processes: list[str]) -> list[str]:
    """Return the steps that workers computed when they died, the most frequent first."""
    crumbs = facts.happened("computing")
    keys = [
        str(key)
        for process, details in zip(crumbs["process"], crumbs["details"], strict=True)
        if process in processes
        for key in details.get("keys", ())
    ]
    if not keys:
        lost = facts.tasks[(facts.tasks["outcome"] == "lost")]
        return [str(step) for step in lost["step"].value_counts().index]
    steps = facts.tasks.drop_duplicates("key").set_index("key")["step"]
    return [str(step) for step in pd.Series(keys).map(steps).dropna().value_counts().index]


def _find_dead(facts: Facts) -> list[str]:
    reasons = facts.processes["reason"].fillna("").astype(str)
    is_dead = reasons.isin([BY_NANNY, LOST]) | reasons.str.startswith((BY_SIGNAL, "ended with"))
    # A worker that the program itself ended by a signal has said goodbye.
    left = facts.happened("left")["process"]
    lost = facts.happened("lost")["process"]
    named = [str(name) for name in facts.processes.index[is_dead]]
    return [name for name in named if name in set(lost) or name not in set(left)]


def _last_held(facts: Facts, process: str) -> float:
    own = facts.samples_of.get(process)
    return float(own["rss_bytes"].max()) if own is not None else 0.0


def _count_given_up(facts: Facts) -> int:
    lost = facts.tasks[facts.tasks["outcome"] == "lost"]
    return int((~lost["key"].isin(facts.ran["key"])).sum()) if facts.is_over else 0


def _redone_seconds(facts: Facts) -> float:
    lost = facts.tasks[facts.tasks["outcome"] == "lost"]
    again = facts.ran[facts.ran.duplicated("key", keep="last")]
    return float((lost["ended"] - lost["started"]).sum() + again["compute_seconds"].sum())
