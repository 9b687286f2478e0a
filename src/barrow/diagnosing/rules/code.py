"""What the code itself does twice, in vain, or only to move things."""

from collections.abc import Iterator

from barrow.diagnosing.facts import Facts
from barrow.model.finding import Finding
from barrow.units import format_count, format_seconds

TWICE_SHARE, TWICE_SECONDS = 0.15, 0.5
SERIALISING_SHARE, SERIALISING_SECONDS = 0.3, 1.0


def computed_twice(facts: Facts) -> Iterator[Finding]:
    """COD01: the same result was computed again, though no worker was lost with it."""
    if facts.is_own or len(facts.happened("lost")):
        return
    again = facts.ran[facts.ran.duplicated("key", keep="first")]
    seconds = float(again["compute_seconds"].sum())
    total = float(facts.ran["compute_seconds"].sum())
    if seconds < max(TWICE_SECONDS, TWICE_SHARE * total):
        return
    step = str(again.groupby("step")["compute_seconds"].sum().idxmax())
    own = again[again["step"] == step]
    saves = seconds / max(1, facts.slots)
    yield Finding(
        "COD01",
        facts.weigh(saves),
        f"'{step}' was computed more than once: {format_count(len(own), 'task')} gave results that "
        "had been there before.",
        (
            f"{format_count(len(again), 'task')} done again, {format_seconds(seconds)} of "
            f"{format_seconds(total)} of computing",
        ),
        "Compute both results at once: a, b = dask.compute(x.sum(), x.mean()); or keep what is "
        f"shared: x = x.persist() after '{step}'.",
        saves_seconds=saves,
    )


def retried(facts: Facts) -> Iterator[Finding]:
    """COD02: a task raised and was tried again."""
    failed = facts.tasks[facts.tasks["outcome"] == "failed"]
    again = failed[failed["key"].isin(facts.tasks[facts.tasks["attempt"] > 1]["key"])]
    if again.empty:
        return
    step = str(again["step"].value_counts().index[0])
    came_through = int(again["key"].drop_duplicates().isin(facts.ran["key"]).sum())
    n = int(again["key"].nunique())
    errors = again["error"].dropna()
    last = facts.tasks[facts.tasks["key"].isin(again["key"])]["error"].dropna()
    reasons = [text for text in [*errors, *last] if text and "tried again" not in text]
    seconds = float((again["ended"] - again["started"]).sum())
    yield Finding(
        "COD02",
        "warning" if came_through < n else "note",
        f"{format_count(n, 'task')} of '{step}' failed and "
        + ("was" if n == 1 else "were")
        + f" tried again: {came_through} came through.",
        (
            f"{format_count(len(again), 'attempt')} in vain, {format_seconds(seconds)}",
            *(f"it said: {reasons[0][:200]}" for _ in reasons[:1]),
        ),
        f"See what '{step}' raises; retries= helps only against what passes by itself.",
        saves_seconds=seconds / max(1, facts.slots),
    )


def serialising(facts: Facts) -> Iterator[Finding]:
    """COD03: more time goes into packing results than into computing them."""
    packing = facts.sum_activity("get-data", "serialize", "compress")
    packing += facts.sum_activity("gather-dep", "deserialize", "decompress")
    packing += facts.sum_activity("execute", "deserialize")
    # Both by the clock: where others have the cores, all takes longer alike.
    computed = facts.sum_activity("execute", "thread-cpu", "thread-noncpu")
    if packing < max(SERIALISING_SECONDS, SERIALISING_SHARE * computed):
        return
    step = str(facts.steps["result_bytes"].idxmax()) if len(facts.steps) else "?"
    saves = packing / max(1, facts.slots)
    yield Finding(
        "COD03",
        facts.weigh(saves),
        f"Results of '{step}' are dear to pack: {format_seconds(packing)} of packing and unpacking "
        f"beside {format_seconds(computed)} of computing.",
        (
            f"packing {format_seconds(facts.sum_activity('get-data', 'serialize'))}, unpacking "
            f"{format_seconds(facts.sum_activity('gather-dep', 'deserialize'))}",
        ),
        f"Let '{step}' return arrays or data frames rather than lists, dictionaries or objects.",
        saves_seconds=saves,
    )
