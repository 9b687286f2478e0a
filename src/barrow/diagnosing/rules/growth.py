"""Memory that stays: leaks, caches, and what malloc keeps."""

from collections.abc import Iterator

import numpy as np

from barrow.diagnosing.facts import Facts
from barrow.diagnosing.quiet import Quiet, find_quiet
from barrow.diagnosing.rules.deaths import paused_for_ever
from barrow.model.finding import Finding
from barrow.units import format_bytes

FEWEST_RESTS = 4
RISING_SHARE = 0.7
LEAK_BYTES, LEAK_SHARE = 50e6, 0.05
PLATEAU_SHARE = 0.15
"""Of a growth: what comes in the last third at most if it is a cache that is full."""
KEPT_BYTES, KEPT_SHARE = 100e6, 0.3
FREE_SHARE = 0.3


def leak(facts: Facts) -> Iterator[Finding]:
    """MEM01: what workers hold between steps grows from step to step."""
    rests = [quiet for quiet in find_quiet(facts) if len(quiet.time) > FEWEST_RESTS]
    growing = [quiet for quiet in rests if _is_growing(facts, quiet, quiet.unmanaged_bytes[1:])]
    if growing:
        worst = max(growing, key=lambda quiet: _growth(quiet.unmanaged_bytes[1:]))
        yield _tell_leak(facts, worst, growing)
        return
    held = [quiet for quiet in rests if _is_growing(facts, quiet, quiet.managed_bytes[1:])]
    if held:
        worst = max(held, key=lambda quiet: _growth(quiet.managed_bytes[1:]))
        grown = worst.managed_bytes[1:]
        yield Finding(
            "MEM01",
            "note",
            f"Results that the program keeps grow from step to step on "
            f"{facts.label(worst.process)}: they are held on purpose, or by variables that are no "
            "longer needed.",
            (f"between steps: {format_bytes(grown[0])}, later {format_bytes(grown[-1])}",),
            "If they are not needed any more: del future, or client.cancel(futures).",
            saves_bytes=int(_growth(grown)),
        )


def _tell_leak(facts: Facts, worst: Quiet, growing: list[Quiet]) -> Finding:
    held = worst.unmanaged_bytes[1:]
    step, grown = _blame(facts, worst)
    is_full = _growth(held[-(len(held) // 3 + 1) :]) < PLATEAU_SHARE * _growth(held)
    evidence = (
        f"{facts.label(worst.process)} between steps: "
        + ", ".join(format_bytes(value) for value in _thin(held)),
        f"of this, {format_bytes(grown)} came while '{step}' ran",
        f"{len(growing)} of {len(facts.workers)} workers grow",
    )
    total = int(sum(_growth(quiet.unmanaged_bytes[1:]) for quiet in growing))
    if is_full:
        claim = f"'{step}' fills a cache on {facts.label(worst.process)}; it has ceased to grow."
        return Finding("MEM01", "note", claim, evidence, "Nothing, if the cache is wanted.")
    return Finding(
        "MEM01",
        "warning",
        f"'{step}' leaks: {facts.label(worst.process)} holds more after each step.",
        evidence,
        f"Look in '{step}' for lists, caches and global variables that grow. Until it is mended, "
        "let workers be replaced: dask.config.set({'distributed.worker.lifetime.duration': "
        "'10 minutes', 'distributed.worker.lifetime.restart': True})",
        saves_bytes=total,
        remedy="restart",
    )


def unmanaged(facts: Facts) -> Iterator[Finding]:
    """MEM06: between steps workers hold much that is no result: kept by malloc, or by the code."""
    kept = []
    for quiet in find_quiet(facts):
        limit = facts.limit_of(quiet.process)
        if np.isnan(limit):
            continue
        least = float(facts.samples_of[quiet.process]["rss_bytes"].min())
        # Samples may begin when it holds much already; what malloc says does not depend on that.
        more = max(float(quiet.unmanaged_bytes[-1]) - least, _kept_by_malloc(facts, quiet))
        if more > max(KEPT_BYTES, KEPT_SHARE * limit):
            kept.append((more, quiet, limit))
    # A leak, or a worker that stands still for it, is the graver name for the same memory.
    if not kept or any(next(rule(facts), None) for rule in (leak, paused_for_ever)):
        return
    more, quiet, limit = max(kept, key=lambda one: one[0])
    free = float(facts.inside.get(quiet.process, {}).get("malloc_free", 0))
    is_free = free > FREE_SHARE * more
    evidence = [
        f"{facts.label(quiet.process)} at rest: {format_bytes(quiet.rss_bytes[-1])}, of which "
        f"{format_bytes(quiet.managed_bytes[-1])} are results",
        f"that is {format_bytes(more)} more than it needs; limit {format_bytes(limit)}",
    ]
    if "malloc_free" in facts.inside.get(quiet.process, {}):
        evidence.append(f"malloc keeps {format_bytes(free)} that nobody uses")
    trim = "client.run(lambda: __import__('ctypes').CDLL('libc.so.6').malloc_trim(0))"
    yield Finding(
        "MEM06",
        "warning",
        f"{facts.label(quiet.process).capitalize()} keeps {format_bytes(more)} at rest that is no "
        + ("result: memory that is free, but not given back." if is_free else "result."),
        tuple(evidence),
        f"Between steps: {trim}"
        if is_free
        else "Something in the process holds it: a cache, a global variable, a library. If it is "
        "not wanted, client.restart() between steps gives it back.",
        saves_bytes=int(more),
        remedy="trim" if is_free else "restart",
    )


def _kept_by_malloc(facts: Facts, quiet: Quiet) -> float:
    """Return what is free and was not given back, at the last rest; malloc counts too much."""
    seen = facts.inside.get(quiet.process, {})
    if "malloc_free" not in seen:
        return 0.0
    unused = float(quiet.unmanaged_bytes[-1]) - float(seen["malloc_used"])
    return max(0.0, min(float(seen["malloc_free"]), unused))


def _is_growing(facts: Facts, quiet: Quiet, held: np.ndarray) -> bool:
    limit = facts.limit_of(quiet.process)
    least = max(LEAK_BYTES, 0.0 if np.isnan(limit) else LEAK_SHARE * limit)
    rises = np.diff(held) > 0.02 * least
    return bool(len(held) >= FEWEST_RESTS - 1 and rises.mean() >= RISING_SHARE) and (
        _growth(held) > least
    )


def _growth(held: np.ndarray) -> float:
    return float(held[-1] - held[0])


def _blame(facts: Facts, quiet: Quiet) -> tuple[str, float]:
    """Return the step during which most was added, and how much."""
    tasks = facts.ran[facts.ran["worker"] == quiet.process].sort_values("ended")
    grown: dict[str, float] = {}
    rises = np.maximum(0, np.diff(quiet.unmanaged_bytes))
    for first, last, rise in zip(
        quiet.tasks_before[:-1], quiet.tasks_before[1:], rises, strict=True
    ):
        spent = tasks.iloc[int(first) : int(last)].groupby("step")["compute_seconds"].sum()
        step = str(spent.idxmax()) if len(spent) else "?"
        grown[step] = grown.get(step, 0.0) + float(rise)
    step = max(grown, key=lambda name: grown[name])
    return step, grown[step]


def _thin(values: np.ndarray, most: int = 6) -> np.ndarray:
    """Return some of many values, the first and the last among them."""
    if len(values) <= most:
        return values
    return np.asarray(values[np.linspace(0, len(values) - 1, most).astype(int)])
