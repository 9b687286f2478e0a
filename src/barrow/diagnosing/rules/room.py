"""Where memory goes: to disk, to one place, to workers that are not needed."""

from collections.abc import Iterator

from barrow.diagnosing.facts import Facts
from barrow.diagnosing.intervals import usual_at_once
from barrow.model.finding import Finding
from barrow.units import format_bytes, format_count, format_seconds

SPILLED_BYTES = 10e6
WRITERS = ("memory-monitor", "execute", "gather-dep")
READERS = ("execute", "get-data")
OVERCOMMITTED = 1.05
HUGE_BYTES, HUGE_SHARE = 100e6, 0.25
CLIENT_BYTES, CLIENT_SHARE = 500e6, 0.3
FEWEST_WORKERS = 4
SPARE_SHARE = 0.2


def spilling(facts: Facts) -> Iterator[Finding]:
    """MEM05: results went to disk for want of memory."""
    most = facts.samples.groupby("process")["spilled_bytes"].max()
    # By whoever notices first: the one that looks at the memory, or a result that comes in.
    written = sum(facts.sum_activity(kind, "disk-write", unit="bytes") for kind in WRITERS)
    total = max(float(most.sum()), written)
    if total <= SPILLED_BYTES:
        return
    worst = str(most.idxmax()) if most.max() > 0 else str(facts.workers.index[0])
    seconds = sum(facts.sum_activity(kind, "disk-write") for kind in WRITERS)
    seconds += sum(facts.sum_activity(kind, "disk-read") for kind in READERS)
    held = facts.steps["result_bytes"].idxmax() if len(facts.steps) else "?"
    yield Finding(
        "MEM05",
        facts.weigh(seconds / max(1, facts.slots)),
        f"Workers wrote {format_bytes(total)} of results to disk for want of memory, "
        f"{facts.label(worst)} most of all.",
        (
            f"at once on disk: {format_bytes(most.sum())}; written: {format_bytes(written)}",
            f"time for writing and reading back: {format_seconds(seconds)}",
            f"most results come from '{held}'",
        ),
        f"Keep fewer results at once: no persist() of what is used once, reduce '{held}' before "
        "it is kept, or give the workers more memory.",
        saves_seconds=seconds / max(1, facts.slots),
        saves_bytes=int(most.sum()),
        remedy="release",
    )


def overcommitted(facts: Facts) -> Iterator[Finding]:
    """MEM07: the limits of all workers together are more than the machine has."""
    is_here = facts.workers["host"] == facts.run.get("host")
    own = facts.workers[is_here & (facts.workers["kind"] == "worker")]
    # Workers that came one after another do not hold their memory at the same time.
    limits = own["limit_bytes"].fillna(0)
    left = own["left"].fillna(facts.last)
    at_once = max(
        (float(limits[(own["joined"] <= t) & (left > t)].sum()) for t in own["joined"]), default=0.0
    )
    if not facts.memory_bytes or at_once <= OVERCOMMITTED * facts.memory_bytes:
        return
    fits = facts.memory_bytes / max(1, len(own))
    yield Finding(
        "MEM07",
        "warning",
        f"{format_count(len(own), 'worker')} may use {format_bytes(at_once)} together, but the "
        f"machine has {format_bytes(facts.memory_bytes)}: the kernel would kill before Dask does.",
        (
            f"limits: {format_bytes(at_once)}; memory: {format_bytes(facts.memory_bytes)}",
            f"held at most: {format_bytes(float(facts.run.get('peak_bytes', 0)))}",
        ),
        f"LocalCluster(n_workers={len(own)}, memory_limit='{format_bytes(0.9 * fits)}')",
        saves_bytes=int(at_once - facts.memory_bytes),
    )


def gathered(facts: Facts) -> Iterator[Finding]:
    """MEM08: one result is so large that a single worker, and then the client, must hold it."""
    if facts.is_own or facts.ran.empty:
        return
    largest = facts.ran.loc[facts.ran["result_bytes"].fillna(0).idxmax()]
    size, limit = float(largest["result_bytes"]), facts.limit_of(str(largest["worker"]))
    room = limit if limit == limit else float(facts.memory_bytes)
    if not size > max(HUGE_BYTES, HUGE_SHARE * room) or not room:
        return
    yield Finding(
        "MEM08",
        "warning",
        f"'{largest['step']}' put {format_bytes(size)} into one piece on "
        f"{facts.label(str(largest['worker']))}, {size / room:.0%} of its memory.",
        (
            f"largest result: {format_bytes(size)}; memory of that worker: {format_bytes(room)}",
            f"median result of a task: {format_bytes(facts.ran['result_bytes'].median())}",
        ),
        "Do not gather it: write it in pieces (x.to_zarr(...)), or reduce it before .compute().",
        saves_bytes=int(size),
    )


def client_memory(facts: Facts) -> Iterator[Finding]:
    """MEM09: the client itself holds much, more than all its workers."""
    clients = facts.processes.index[facts.processes["kind"] == "client"]
    workers = facts.workers.index[facts.workers["kind"] == "worker"]
    if facts.is_own or clients.empty or workers.empty:
        return
    own = facts.samples_of.get(str(clients[0]))
    if own is None:
        return
    peak = float(own["rss_bytes"].max())
    grown = peak - float(own["rss_bytes"].iloc[0])
    others = sum(
        float(facts.samples_of[w]["rss_bytes"].max()) for w in workers if w in facts.samples_of
    )
    share = CLIENT_SHARE * facts.memory_bytes
    if grown < CLIENT_BYTES or (peak < others and grown < (share or grown + 1)):
        return
    yield Finding(
        "MEM09",
        "warning" if share and grown > share else "note",
        f"The client held {format_bytes(peak)}, "
        + ("more than" if peak > others else "beside")
        + f" all {len(workers)} workers together.",
        (
            f"client: from {format_bytes(own['rss_bytes'].iloc[0])} to {format_bytes(peak)}",
            f"workers together, each at its peak: {format_bytes(others)}",
        ),
        "Leave results on the workers or on disk: write with to_zarr or to_parquet, gather only "
        "what is small, and load inputs in tasks rather than in the client.",
        saves_bytes=int(grown),
    )


def spare_workers(facts: Facts) -> Iterator[Finding]:
    """MEM10: more workers than ever had work: they cost memory and bring no speed."""
    own = facts.workers[facts.workers["kind"] == "worker"]
    if facts.is_own or len(own) < FEWEST_WORKERS or facts.ran.empty:
        return
    first = facts.ran.groupby("worker")["began"].min()
    at_once = usual_at_once(facts.ran["began"], facts.ran["ended"])
    threads = max(1, int(own["threads"].median()))
    # Those that came one after another count once.
    there, needed = facts.slots // threads, max(1, -(-int(at_once) // threads))
    if there < FEWEST_WORKERS or needed > 0.5 * there:
        return
    held = [
        float(facts.samples_of[w]["rss_bytes"].max()) for w in own.index if w in facts.samples_of
    ]
    spare = sum(sorted(held)[-there:][: there - needed])
    is_much = bool(facts.memory_bytes and spare > SPARE_SHARE * facts.memory_bytes)
    yield Finding(
        "MEM10",
        "warning" if is_much else "note",
        f"{there} workers were there, but never more than {format_count(int(at_once), 'task')} "
        f"ran at once: {format_count(needed, 'worker')} would have done.",
        (
            f"tasks at once, for 95 % of the time: {at_once:.0f}",
            f"workers that got a task: {len(first)} of {len(own)}",
            f"memory of those not needed: {format_bytes(spare)}",
        ),
        f"n_workers={needed}, or cut the work into more pieces.",
        saves_bytes=int(spare),
    )
