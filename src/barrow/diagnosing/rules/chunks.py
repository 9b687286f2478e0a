"""Chunks of the wrong size or shape."""

from collections.abc import Iterator
from math import prod

import numpy as np
import pandas as pd

from barrow.diagnosing.facts import Facts
from barrow.model.finding import Finding
from barrow.units import format_bytes, format_count, format_seconds

MANY_TASKS = 200
SHORT_SECONDS = 0.01
GOOD_SECONDS = 0.1
OVERHEAD_SHARE = 0.5
LONG_SECONDS = 1.5
IDLE_SHARE = 0.35
FEW_TASKS = 8
UNEVEN = 3.0
READ_AGAIN, MUCH_READ_AGAIN = 2.0, 4.0
READ_BYTES = 50e6
READERS = {"from-zarr", "open_dataset", "from-array", "getter", "array"}
"""Steps that only read: what comes out of them is what was wanted. Fused ones give no such sign."""
HALO_NOTE, HALO_WARNING = 0.3, 0.5


def too_small(facts: Facts) -> Iterator[Finding]:
    """CHK01: tasks are so short that handing them out takes longer than doing them."""
    if facts.is_own or len(facts.ran) < MANY_TASKS:
        return
    mean = float(facts.ran["compute_seconds"].mean())
    overhead = facts.lost_seconds["overhead"]
    room = facts.slots * facts.active_seconds
    if mean >= SHORT_SECONDS or overhead < OVERHEAD_SHARE * room:
        return
    step = str(facts.steps["tasks"].idxmax())
    n = int(facts.steps.at[step, "tasks"])
    factor = max(2, round(GOOD_SECONDS / max(mean, 1e-5)))
    saves = overhead / facts.slots * (1 - 1 / factor)
    yield Finding(
        "CHK01",
        facts.weigh(saves),
        f"The chunks are too small: {format_count(n, 'task')} of '{step}' compute for "
        f"{format_seconds(float(facts.steps.at[step, 'median_seconds']))} each, and handing them "
        "out takes longer.",
        (
            f"{len(facts.ran):,} tasks, {format_seconds(mean)} each on average",
            f"{overhead / room:.0%} of the workers' time was spent between tasks",
        ),
        f"Make chunks about {factor} times as large: x.rechunk(...) where they are made, or "
        f"chunks= when they are read. A task should take {format_seconds(GOOD_SECONDS)} or more.",
        saves_seconds=saves,
        remedy="batch",
    )


def too_large(facts: Facts) -> Iterator[Finding]:
    """CHK02: so few and long tasks that part of the workers has none."""
    if facts.steps.empty or facts.slots < 2:
        return
    step = str(facts.steps.index[0])
    row = facts.steps.loc[step]
    n, window = int(row["tasks"]), float(row["ended"] - row["began"])
    share = row["compute_seconds"] / max(1e-9, facts.steps["compute_seconds"].sum())
    ideal = float(row["compute_seconds"]) / facts.slots
    if not 1 < n < 2 * facts.slots or row["median_seconds"] < LONG_SECONDS or share < 0.5:
        return
    # Tasks that wait for one another cannot run at once, whatever their size.
    tasks = facts.ran[facts.ran["step"] == step]
    is_free = tasks["ready"].max() < tasks["ended"].min()
    is_even = row["longest_seconds"] < UNEVEN * row["median_seconds"]
    if not is_free or not is_even or window - ideal < IDLE_SHARE * window:
        return
    is_cut = bool(tasks["key"].str.startswith("(").all())
    saves = window - ideal
    yield Finding(
        "CHK02",
        facts.weigh(saves) if is_cut else "note",
        f"The chunks are too large: '{step}' has {format_count(n, 'task')} for "
        f"{format_count(facts.slots, 'thread')}, so that some have nothing to do.",
        (
            f"{n} tasks of {format_seconds(float(row['median_seconds']))} took "
            f"{format_seconds(window)}; spread evenly they would take {format_seconds(ideal)}",
        ),
        f"Cut '{step}' into {4 * facts.slots} chunks or more: x.rechunk(...) before it.",
        saves_seconds=saves,
        remedy="split",
    )


def uneven(facts: Facts) -> Iterator[Finding]:
    """CHK03: some chunks are much larger than others, and the run waits for them."""
    for step, row in facts.steps.head(5).iterrows():
        tasks = facts.ran[facts.ran["step"] == step]
        sizes = size_of(tasks)
        if len(tasks) < FEW_TASKS or not sizes.median() > 0:
            continue
        ratio = float(sizes.max() / sizes.median())
        heavy = tasks[sizes > UNEVEN * sizes.median()]
        # The first task of each worker imports what it needs: that is no matter of its size.
        firsts = tasks.groupby("worker")["began"].idxmin()
        tasks = tasks.drop(index=firsts[~firsts.isin(heavy.index)])
        tail = measure_tail(facts, tasks)
        longest = float(heavy["compute_seconds"].max())
        is_slow = longest > UNEVEN * row["median_seconds"]
        is_last = tasks.at[tasks["ended"].idxmax(), "worker"] in set(heavy["worker"])
        if ratio < UNEVEN or not is_slow or not is_last or tail < 0.2:
            continue
        yield Finding(
            "CHK03",
            facts.weigh(tail),
            f"The chunks of '{step}' are uneven: the largest is {ratio:.0f} times the usual one, "
            "and the others wait for it.",
            (
                f"sizes: median {format_bytes(sizes.median())}, "
                f"largest {format_bytes(sizes.max())}",
                f"times: median {format_seconds(row['median_seconds'])}, longest "
                f"{format_seconds(longest)}",
                f"at the end others waited {format_seconds(tail)}",
            ),
            f"Cut the data of '{step}' into equal chunks: x.rechunk('auto'), or repartition.",
            saves_seconds=tail,
            remedy="split",
        )
        return


def size_of(tasks: pd.DataFrame) -> pd.Series:
    """Return how large tasks are: by what they made, or if that is all the same by what came in."""
    made = tasks["result_bytes"].fillna(0)
    return made if made.max() > UNEVEN * made.median() else tasks["received_bytes"].fillna(0)


def measure_tail(facts: Facts, tasks: pd.DataFrame) -> float:
    """Return how much sooner tasks would have ended, had they been spread evenly."""
    last = float(tasks["ended"].max())
    is_free = tasks["ready"].max() < tasks["ended"].min()
    # Where tasks become ready one by one, only the time counts when none was left to begin.
    begin = float(tasks["began"].min() if is_free else tasks["began"].max())
    during = tasks[tasks["ended"] > begin]
    busy = float((during["ended"] - during["began"].clip(lower=begin)).sum())
    return float(max(0.0, (last - begin) - busy / facts.slots))


def misaligned(facts: Facts) -> Iterator[Finding]:
    """CHK04: chunks do not match those of the storage, which is read again and again."""
    readers = facts.steps[facts.steps.index.isin(READERS)]
    read = sum(float(seen.get("read_bytes", 0)) for seen in facts.inside.values())
    used = float(readers["result_bytes"].sum()) if len(readers) else 0.0
    spilled = facts.samples["spilled_bytes"].max() > 0
    if not used or spilled or read - used < READ_BYTES or read < READ_AGAIN * used:
        return
    step = str(readers["result_bytes"].idxmax())
    yield Finding(
        "CHK04",
        "warning" if read > MUCH_READ_AGAIN * used and read - used > 4 * READ_BYTES else "note",
        f"'{step}' reads {read / used:.1f} times what it uses: its chunks cut across those of the "
        "storage.",
        (f"read: {format_bytes(read)}; used: {format_bytes(used)}",),
        "Choose chunks that are multiples of the stored ones: dask.array.from_zarr(path) without "
        "chunks=, or xarray.open_zarr(path, chunks={}), then .rechunk to multiples.",
    )


def dear_halo(facts: Facts) -> Iterator[Finding]:
    """CHK05: most of what a task computes is the border it shares with its neighbours."""
    plan, sources = facts.plan, list(facts.plan.get("reads") or ())
    lengths = plan.get("lengths") or {}
    shape = " × ".join(f"{dim} {length}" for dim, length in lengths.items())
    # With several sources, or one of another shape, nobody knows which part is halo.
    if len(sources) != 1 or shape not in str(plan.get("source")) or facts.ran.empty:
        return
    needed = prod(map(int, lengths.values())) * np.dtype(sources[0]).itemsize
    read = float(facts.ran["read_bytes"].sum())
    extra = 1 - needed / read if read else 0.0
    spent = float(facts.ran["compute_seconds"].sum())
    if extra < HALO_NOTE or spent < 1:
        return
    saves = extra * spent / facts.slots / 2
    chunk = " × ".join(f"{dim} {size}" for dim, size in plan["chunks"].items())
    yield Finding(
        "CHK05",
        facts.weigh(saves) if extra > HALO_WARNING else "note",
        f"The halo of '{plan['name']}' is dear: {extra:.0%} of what its tasks read belongs to "
        "their neighbours.",
        (
            f"read: {format_bytes(read)}; the data: {format_bytes(needed)}; chunks of {chunk}",
            f"all tasks together took {format_seconds(spent)}",
        ),
        "Give the tasks more memory (memory=), so that chunks can be larger, or cut only along "
        "dimensions without a halo.",
        saves_seconds=saves,
    )
