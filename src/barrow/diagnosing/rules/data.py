"""Data on their way: disk, network, graphs, and the time until work begins."""

from collections.abc import Iterator

from barrow.diagnosing.facts import Facts
from barrow.diagnosing.rules.workers import start_seconds
from barrow.model.finding import Finding
from barrow.units import format_bytes, format_count, format_seconds

OFF_CPU = 0.6
DISK_BYTES, DISK_RATE = 100e6, 10e6
OWN_SHARE = 0.6
TRANSFER_SHARE, TRANSFER_BYTES = 0.3, 50e6
RECHUNKS = "rechunk|shuffle|p2p|split-"
MANY_CUTS = 100
HEAVY_BYTES, VERY_HEAVY_BYTES = 10e6, 100e6
MANY_TASKS, LONG_SECONDS = 20_000, 2.0
SLOW_START, VERY_SLOW_START = 5.0, 20.0


def disk_bound(facts: Facts) -> Iterator[Finding]:
    """DAT01: tasks wait for the disk."""
    if facts.is_own:
        yield from _own_disk(facts)
        return
    on, off = (facts.sum_activity("execute", f"thread-{name}") for name in ("cpu", "noncpu"))
    own = facts.samples[facts.samples["process"].isin(facts.workers.index)]
    counters = own.groupby("process")["disk_read_bytes"].agg(["min", "max"])
    # Before the first task workers have read their own programs.
    is_before = own["time"] <= (facts.tasks["started"].min() if len(facts.tasks) else 0)
    before = own[is_before].groupby("process")["disk_read_bytes"].max()
    read = float((counters["max"] - before.reindex(counters.index).fillna(counters["min"])).sum())
    if off < OFF_CPU * (on + off) or read < DISK_BYTES or read < DISK_RATE * off:
        return
    saves = off / max(1, facts.slots) / 2
    step = str(facts.steps.index[0])
    yield Finding(
        "DAT01",
        facts.weigh(saves),
        f"'{step}' waits for the disk: workers computed for {on / (on + off):.0%} of the time of "
        "their tasks.",
        (
            f"read from disk: {format_bytes(read)}, {format_bytes(read / max(off, 1e-9))} per "
            "second of waiting",
            f"in tasks: {format_seconds(on)} on the CPU, {format_seconds(off)} off it",
        ),
        "Copy the data to a local disk first, store them in larger or compressed chunks, or use "
        "more threads than cores for reading.",
        saves_seconds=saves,
    )


def _own_disk(facts: Facts) -> Iterator[Finding]:
    if facts.ran.empty:
        return
    moved = facts.ran["read_seconds"] + facts.ran["write_seconds"]
    total = float(facts.ran["compute_seconds"].sum())
    waited = total - float(facts.ran["cpu_seconds"].sum())
    size = float((facts.ran["read_bytes"] + facts.ran["result_bytes"]).sum())
    share = float(moved.sum()) / max(1e-9, total)
    if share < OWN_SHARE or waited < OFF_CPU * total or size < DISK_BYTES:
        return
    saves = min(waited, float(moved.sum())) / facts.slots / 2
    yield Finding(
        "DAT01",
        "note",
        f"'{facts.plan.get('name')}' waits for the disk: {share:.0%} of the time of its tasks is "
        "reading and writing.",
        (
            f"{format_bytes(size)} read and written in {format_seconds(float(moved.sum()))}",
            f"of {format_seconds(total)} in tasks {format_seconds(waited)} without the CPU",
        ),
        "Put source and result on a local disk, or store them compressed.",
        saves_seconds=saves,
    )


def transfers(facts: Facts) -> Iterator[Finding]:
    """DAT02: workers wait for data of other workers."""
    sent, computed, size = _measure_transfers(facts)
    is_slow = sent > TRANSFER_SHARE * computed and size > TRANSFER_BYTES
    if facts.is_own or not is_slow or next(rechunking(facts), None) is not None:
        return
    step = str(facts.steps["transfer_seconds"].idxmax())
    saves = sent / max(1, facts.slots) / 2
    yield Finding(
        "DAT02",
        facts.weigh(saves),
        f"'{step}' waits for data from other workers: {format_seconds(sent)} of waiting beside "
        f"{format_seconds(computed)} of computing.",
        (f"moved between workers: {format_bytes(size)}",),
        "Reduce before data are brought together, choose chunks so that neighbours stay together, "
        "or use fewer workers with more threads.",
        saves_seconds=saves,
    )


def rechunking(facts: Facts) -> Iterator[Finding]:
    """DAT03: most tasks only cut data anew."""
    anew = facts.steps[facts.steps.index.astype(str).str.contains(RECHUNKS, case=False)]
    n_anew, n = int(anew["tasks"].sum()), len(facts.ran)
    if facts.is_own or n_anew <= max(MANY_CUTS, 0.5 * n):
        return
    sent, _, size = _measure_transfers(facts)
    step = str(anew["tasks"].idxmax())
    saves = (sent / 2 + float(anew["compute_seconds"].sum())) / facts.slots
    yield Finding(
        "DAT03",
        facts.weigh(saves),
        f"Most of the work is cutting data anew: {format_count(n_anew, 'task')} of {n:,}, most of "
        f"them '{step}'.",
        (
            f"moved between workers: {format_bytes(size)}, {format_seconds(sent)} of waiting",
            f"tasks that cut data anew: {n_anew:,} of {n:,}",
        ),
        "Rechunk once, before the loop, to chunks that all steps can use; store the result in "
        "them; or dask.config.set({'array.rechunk.method': 'p2p'}).",
        saves_seconds=saves,
    )


def _measure_transfers(facts: Facts) -> tuple[float, float, float]:
    """Return the seconds of waiting for data, those of computing, and the bytes that moved."""
    ran = facts.ran
    return (
        float(ran["send_seconds"].sum()),
        float(ran["compute_seconds"].sum()),
        float(ran["received_bytes"].sum()),
    )


def heavy_graph(facts: Facts) -> Iterator[Finding]:
    """DAT04: large objects travel inside the graph, through the scheduler."""
    graphs = [d for d in facts.happened("graph")["details"] if d.get("bytes", 0) > HEAVY_BYTES / 10]
    total = sum(float(details["bytes"]) for details in graphs)
    if facts.is_own or total < HEAVY_BYTES:
        return
    worst = max(graphs, key=lambda details: float(details["bytes"]))
    yield Finding(
        "DAT04",
        "warning" if total > VERY_HEAVY_BYTES else "note",
        f"'{worst['heaviest']}' carries large objects in its graph: {format_bytes(total)} went "
        "through the client and the scheduler.",
        (
            f"{format_count(len(graphs), 'graph')}, the largest with "
            f"{format_bytes(worst['bytes'])} in {format_count(int(worst['tasks']), 'task')}",
        ),
        "Send it once: big = client.scatter(array, broadcast=True), and hand in big instead of "
        "array; or load it inside the task.",
        saves_bytes=int(total),
    )


def large_graph(facts: Facts) -> Iterator[Finding]:
    """DAT05: the graph has so many tasks that the scheduler is what the run waits for."""
    graphs = facts.happened("graph")["details"]
    # Ordering and setting up are measured with the wrong sign.
    spent = [float(details.get("duration_seconds", 0.0)) for details in graphs]
    tasks = [int(details.get("tasks", 0)) for details in graphs]
    if facts.is_own or not spent:
        return
    if max(tasks) < MANY_TASKS and sum(spent) < LONG_SECONDS:
        return
    step = f"'{facts.steps['tasks'].idxmax()}'" if len(facts.steps) else "it"
    yield Finding(
        "DAT05",
        facts.weigh(sum(spent)),
        f"The graph is large: {format_count(max(tasks), 'task')}, most of them {step}; the "
        f"scheduler needed {format_seconds(sum(spent))} to take it in.",
        (
            f"{format_count(len(spent), 'graph')}, {sum(tasks):,} tasks in all",
            f"the scheduler did nothing else for {format_seconds(sum(spent))}",
        ),
        "Use larger chunks, or hand the work in in parts: one part of the data after another.",
        saves_seconds=sum(spent),
    )


def slow_start(facts: Facts) -> Iterator[Finding]:
    """DAT06: workers take long from their start until they can work."""
    starts = start_seconds(facts).dropna()
    if facts.is_own or starts.empty or starts.max() < SLOW_START:
        return
    worst, seconds = str(starts.idxmax()), float(starts.max())
    share = seconds / facts.seconds
    yield Finding(
        "DAT06",
        "warning" if seconds > VERY_SLOW_START and share > 0.2 else "note",
        f"{facts.label(worst).capitalize()} took {format_seconds(seconds)} to start, "
        f"{share:.0%} of the run.",
        (
            f"from the start of its process until it joined: {format_seconds(seconds)}; median of "
            f"all: {format_seconds(float(starts.median()))}",
        ),
        "Look at what workers import and preload, and whether the environment lies on a slow "
        "network disk; keep the cluster for several runs.",
        saves_seconds=seconds,
    )
