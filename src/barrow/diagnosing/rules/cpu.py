"""What keeps the processor from the work: the interpreter's lock, too many threads, a busy loop."""

from collections import Counter
from collections.abc import Iterator

from barrow.diagnosing.facts import Facts
from barrow.diagnosing.intervals import merge, total_length
from barrow.model.finding import Finding
from barrow.units import format_count, format_seconds

AT_ONCE = 1.3
WAIT_SECONDS = 0.0015
"""To get the interpreter's lock back, on average; Python lets go of it every 5 ms."""
LEAST_CORES, ONE_CORE = 0.3, 1.3
"""That threads use together if one of them has the lock; less, and they wait for something else."""
FEWEST_LOOKS = 6
OUTSIDE_SHARE = 0.25
TOO_MANY = 1.2
NOTED_TICK, BAD_TICK = 1.0, 5.0
EXPLAINING_SHARE = 0.8
LOOP_LOOKS, LOOP_SHARE = 10, 0.5
GAIN = 0.9
"""Of the time of a loop that is saved when it is compiled: most become 10 to 100 times as fast."""


def interpreter_lock(facts: Facts) -> Iterator[Finding]:
    """CPU01: threads of a worker wait for one another: only one at a time may run Python."""
    for process, seen in facts.inside.items():
        tasks = facts.ran[facts.ran["worker"] == process]
        if process not in facts.workers.index or facts.workers.at[process, "threads"] < 2:
            continue
        busy = merge(tasks["began"], tasks["ended"])
        seconds = total_length(busy)
        looks = int(seen.get("gil_looks", 0))
        if seconds < 1 or looks < FEWEST_LOOKS:
            continue
        at_once = float(tasks["compute_seconds"].sum()) / seconds
        wait = float(seen["gil_waited"]) / looks
        cpu = sum(facts.used_cpu(process, a, b) for a, b in busy[:200])
        used = cpu / max(1e-9, total_length(busy[:200]))
        is_one = LEAST_CORES < used < ONE_CORE
        if at_once < AT_ONCE or wait < WAIT_SECONDS or not is_one or facts.cores < 2:
            continue
        step = str(tasks.groupby("step")["compute_seconds"].sum().idxmax())
        hot = next(iter(seen.get("hot", {})), "")
        saves = seconds * (1 - 1 / min(at_once, facts.cores))
        where = f", most of all in {hot}()" if hot else ""
        yield Finding(
            "CPU01",
            facts.weigh(saves),
            f"'{step}' holds the interpreter's lock{where}: the threads of "
            f"{facts.label(process)} run one after another.",
            (
                f"{at_once:.1f} tasks at once used {used:.1f} cores",
                f"a thread waits {format_seconds(wait)} on average until it may go on",
            ),
            "Use processes: LocalCluster(processes=True, threads_per_worker=1); or compile "
            f"{hot or 'the function'} with numba.njit(nogil=True).",
            saves_seconds=saves,
        )
        return


def library_threads(facts: Facts) -> Iterator[Finding]:
    """CPU02: numerical libraries start threads of their own beside those of Dask."""
    own = facts.workers
    counts = {
        str(name): int(facts.inside.get(str(name), {}).get("library_threads", 1))
        for name in own.index
    }
    threads = sum(
        counts[str(name)] * int(row["threads"]) for name, row in own.iterrows() if row["left"] != 0
    )
    most = max(counts.values(), default=1)
    if most < 2 or threads <= TOO_MANY * facts.cores or facts.slots < 2:
        return
    inside = facts.sum_activity("execute", "thread-cpu")
    busy = merge(facts.ran["began"], facts.ran["ended"])
    if not len(busy):
        return
    spans = [(float(busy[0, 0]), float(busy[-1, 1]))] if len(busy) > 200 else busy
    total = sum(
        facts.used_cpu(str(name), first, last) for name in own.index for first, last in spans
    )
    outside = total - inside
    if not outside > OUTSIDE_SHARE * total or total < 1:
        return
    step = str(facts.steps.index[0])
    is_costly = outside > total / 2 or facts.weigh(outside / facts.cores) != "note"
    yield Finding(
        "CPU02",
        "warning" if is_costly else "note",
        f"Too many threads: the libraries behind '{step}' start {most} each, in "
        f"{format_count(facts.slots, 'task')} at once on {format_count(facts.cores, 'core')}.",
        (
            f"{threads} threads for {facts.cores} cores",
            f"{outside / total:.0%} of the CPU was used outside the threads of Dask",
        ),
        "client.run(lambda: bool(__import__('threadpoolctl').threadpool_limits(1))), or "
        "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 before the start.",
        saves_seconds=0.0,
        remedy="limit threads",
    )


def blocked_loop(facts: Facts) -> Iterator[Finding]:
    """CPU03: a worker could not answer for seconds, because a task kept the interpreter's lock."""
    for process, seen in facts.inside.items():
        tasks = facts.ran[facts.ran["worker"] == process]
        for tick, until in seen.get("turns", ()):
            if tick < NOTED_TICK or tasks.empty:
                break
            # Any loop is slow while others have the cores, and the first task imports what it
            # needs: there must be another that ran all that time.
            later = tasks.drop(index=tasks["began"].idxmin())
            slack = (1 - EXPLAINING_SHARE) * tick
            is_there = (later["began"] < until - tick + slack) & (later["ended"] > until - slack)
            if not is_there.any():
                continue
            step = str(later.loc[later["compute_seconds"].where(is_there).idxmax(), "step"])
            yield Finding(
                "CPU03",
                "warning" if tick > BAD_TICK else "note",
                f"{facts.label(process).capitalize()} could not answer for "
                f"{format_seconds(tick)}: '{step}' keeps the interpreter's lock.",
                (f"a turn of its loop took {format_seconds(tick)}; usual: 20 ms",),
                "Let compiled code release the lock (nogil), or call it in a process of its own.",
            )
            return


def python_loop(facts: Facts) -> Iterator[Finding]:
    """CPU04: the time goes into a loop that the interpreter runs step by step."""
    looks, loops = 0, Counter[str]()
    for seen in facts.inside.values():
        pace = seen.get("pace", {"looks": 0, "loops": {}})
        looks += pace["looks"]
        loops.update(pace["loops"])
    name, n = next(iter(loops.most_common(1)), ("", 0))
    if looks < LOOP_LOOKS or n < LOOP_SHARE * looks or facts.steps.empty:
        return
    # Where threads wait for one another, that is the graver name.
    if next(interpreter_lock(facts), None) is not None:
        return
    step, spent = str(facts.steps.index[0]), float(facts.ran["compute_seconds"].sum())
    yield Finding(
        "CPU04",
        "note",
        f"'{step}' spends its time in a loop in Python, in {name}().",
        (
            f"{n} of {looks} looks at computing threads found them in that loop, in steps of less "
            "than a millisecond",
            f"all tasks together took {format_seconds(spent)}",
        ),
        f"Put the loop of {name}() into a function that takes arrays and numbers, with "
        "@numba.njit(nogil=True) above it, and call that; or compute on whole arrays at once.",
        saves_seconds=GAIN * n / looks * spent / facts.slots,
    )
