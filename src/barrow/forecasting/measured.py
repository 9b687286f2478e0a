"""Read a load from a record: what its tasks took, what lay between them, and what waited for what.

Tables in, numbers out. The one number that no table has, how long a slot stands still between
two tasks, is chosen so that a simulation of the run as it was takes as long as the run did.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from barrow.errors import InputError
from barrow.forecasting.order import find_order, find_rows
from barrow.model.facts import name_program, read_plan
from barrow.model.plan import Plan
from barrow.recording.metrics import cpu_by_step
from barrow.reporting.tables import Tables, numbers
from barrow.reporting.tasks import Tasks, read_tasks
from barrow.simulating.load import Load, Stage
from barrow.simulating.simulate import UNITS_PER_SLOT, put_together, simulate

RESTART_SECONDS = 5.0
"""Until a worker that was lost is replaced, where nobody has seen it."""
IDLE_SHARE = 0.03
"""Of a core: what client and scheduler use while nothing happens."""
IDLE_WORKER_SHARE = 0.04
"""The same of a worker."""
TURNING_SHARE = 0.05
"""Of a core: what is lost where tasks take turns on it, and find its caches full of others."""
SEEN_SHARE = 0.5
"""Of the life of a process that samples have to cover, to tell about the rest of it."""
LEAST_SCHEDULER_SECONDS = 250e-6
"""For a task, where it is lost in what they use anyway."""
FITTING_STEPS = 14
ENOUGH_TASKS = 2000
"""To find the gap between tasks: more of them are put together."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A load, and how it was done when it was measured."""

    name: str
    load: Load
    stage: Stage
    seconds: float
    """From the beginning of the run to its end."""
    plan: Plan | None = None
    """Of a run of barrow's own."""
    held: tuple[tuple[float, int], ...] = ()
    """How many workers there were from a moment on, in seconds since the beginning."""
    inputs: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Of each task: results of others that it takes. Empty if nobody knows."""

    @property
    def workers(self) -> int:
        """How many there were."""
        return self.stage.workers

    @property
    def mean_held(self) -> float:
        """How many workers there were on average."""
        if not self.held:
            return float(self.workers)
        ends = [when for when, _ in self.held[1:]] + [self.seconds]
        times = [max(0.0, end - when) for (when, _), end in zip(self.held, ends, strict=True)]
        total = sum(times)
        spent = sum(time * number for time, (_, number) in zip(times, self.held, strict=True))
        return spent / total if total else float(self.workers)


def read_measured(record: Tables) -> Measured:
    """Return what a record says about the load of its run."""
    return _Reading(record).measured()


class _Reading:
    """One record on its way to a load."""

    def __init__(self, record: Tables) -> None:
        self.record = record
        self.facts = record.facts
        self.plan = read_plan(self.facts)
        self.name = name_program(self.facts) if self.plan is None else self.plan.name
        began = float(self.facts.get("began") or 0.0)
        tasks = read_tasks(record, self.name, began)
        tasks = tasks.pick(tasks.is_done & (tasks.seconds >= 0))
        if not len(tasks):
            raise InputError(
                f"'{self.name}' has finished no task: there is nothing to foresee from."
            )
        self.tasks: Tasks = tasks.pick(np.argsort(tasks.started, kind="stable"))
        self.places = find_rows(record, self.tasks)
        self.first, self.last = float(self.tasks.started[0]), float(self.tasks.ended.max())
        stages = [float(stage["began"]) for stage in self.facts.get("stages") or ()]
        self.began = min([began or self.first, *stages, self.first])
        self.ended = max(float(self.facts.get("ended") or self.last), self.last)
        self.processes = _Processes(record, self.tasks, self.first, self.last)

    def measured(self) -> Measured:
        """Return all of it."""
        stage, load = self._stage(), self._load()
        load = fit_gap(load, stage, self.ended - self.began)
        return Measured(
            self.name,
            load,
            stage,
            self.ended - self.began,
            self.plan,
            tuple(self._list_held()),
            self._count_inputs(),
        )

    def _stage(self) -> Stage:
        workers, threads = self._count_slots()
        cores = (self.facts.get("machine") or {}).get("cores")
        if cores is None and self.plan is not None:
            cores = self.plan.cores
        if not cores or not self.processes.is_one_machine:
            return Stage(workers, threads)
        return Stage(workers, threads, float(cores))

    def _count_slots(self) -> tuple[int, int]:
        plan = self.plan
        if plan is not None:
            # Threads of this process are workers too, as far as time goes.
            in_process = plan.engine in ("inline", "threads")
            return (plan.slots, 1) if in_process or plan.at_once else (plan.workers, plan.threads)
        if not self.processes.threads:
            places = set(zip(self.tasks.process, self.tasks.thread, strict=True))
            return len(places), 1
        threads = max(1, round(float(np.median(self.processes.threads))))
        return len(self.processes.threads), threads

    def _load(self) -> Load:
        stage, tasks = self._stage(), self.tasks
        count, slots = len(tasks), stage.slots
        serial, outside = self.processes.serial_seconds, self.processes.worker_seconds
        cpu = self._cpu_of_tasks()
        window = max(1e-9, self.last - self.first)
        # A worker that decodes on several cores at once does no more than its slots have time for.
        aside = max(0.0, min(outside, slots * window) - float(cpu.sum()))
        idle = IDLE_WORKER_SHARE * stage.workers * window if outside else 0.0
        if outside > float(cpu.sum()):
            idle = min(aside, idle)
        else:  # too few samples to tell: no worker uses less than its tasks
            aside = idle
        # Where there were not enough cores, waiting for one of them is not waiting for the disk.
        stretch = find_stretch((float(cpu.sum()) + aside) / window, serial / window, stage.cores)
        crowding = self._crowding()
        crowd = min(1.0, (slots - 1) / max(1.0, stage.cores - 1)) if stage.cores < np.inf else 0.0
        own = cpu / (1 + (crowding - 1) * crowd)
        step_numbers = {name: number for number, name in enumerate(dict.fromkeys(tasks.step))}
        after, delays = find_order(self.record, tasks, self.places, self.first)
        return Load(
            cpu_seconds=own + (aside - idle) / count,
            # Other threads of its process may do what a task waits for: decode what it reads.
            wait_seconds=np.maximum(0.0, tasks.seconds - (cpu + (aside - idle) / count) * stretch),
            disk_bytes=self._disk_bytes(),
            peak_bytes=_known(tasks.peak_bytes),
            steps=np.array([step_numbers[name] for name in tasks.step], np.int64),
            after=after,
            delay_seconds=delays,
            scheduler_seconds=_share_out(serial, count, window),
            client_seconds=(self.first - self.began) + (self.ended - self.last),
            start_seconds=self._late_seconds(),
            losses_per_second=self._count_losses() / (stage.workers * window),
            restart_seconds=RESTART_SECONDS,
            crowding=crowding,
            turning_share=TURNING_SHARE,
            idle_share=idle / (stage.workers * window),
            worker_bytes=self._worker_bytes(stage.threads),
            client_bytes=self.processes.client_bytes,
            is_one_machine=self.processes.is_one_machine,
        )

    def _cpu_of_tasks(self) -> np.ndarray:
        """Return the seconds of each task on a core."""
        tasks = self.tasks
        known = tasks.cpu_seconds
        if not np.isnan(known).any():
            return np.asarray(np.minimum(known, tasks.seconds))
        steps = np.array(tasks.step, object)
        share = np.ones(len(tasks))
        for step, cpu in cpu_by_step(self.facts).items():
            of_step = steps == step
            spent = float(tasks.seconds[of_step].sum())
            share[of_step] = min(1.0, cpu / spent) if spent else 1.0
        return np.asarray(np.where(np.isnan(known), share * tasks.seconds, known))

    def _disk_bytes(self) -> np.ndarray:
        if not self.tasks.has_phases:
            return np.zeros(0)  # what Dask's tasks read is not known
        found = np.nan_to_num(self.tasks.read_bytes) + np.nan_to_num(self.tasks.written_bytes)
        is_stored = self.plan is None or self.plan.result == "store"
        return np.asarray(found if is_stored else np.nan_to_num(self.tasks.read_bytes))

    def _crowding(self) -> float:
        if self.plan is None or not self.plan.cost.is_measured:
            return 1.0
        in_threads = self.plan.threads > 1 or self.plan.engine == "threads"
        return self.plan.cost.crowding(self.plan.items, in_threads=in_threads)

    def _worker_bytes(self, threads: int) -> int:
        peaks = _known(self.tasks.peak_bytes)
        inside = threads * float(peaks.max()) if len(peaks) else 0.0
        return max(0, int(self.processes.worker_bytes - inside))

    def _count_inputs(self) -> np.ndarray:
        if self.tasks.has_phases:
            return np.zeros(0)  # chunks of barrow's own take nothing from one another
        known = np.append(numbers(self.record.columns("dask_task")["inputs"]), np.nan)
        return np.asarray(np.nan_to_num(known[self.places]))

    def _count_losses(self) -> int:
        events = self.record.columns("event")
        times = zip(events["kind"], events["time"], strict=True)
        return sum(kind == "lost" and self.first <= when <= self.last for kind, when in times)

    def _late_seconds(self) -> np.ndarray:
        """Return how long workers took to come; empty if they were there from the beginning."""
        came = self.processes.joined
        if self.plan is not None:
            # There a process is noted when somebody looks at it: its coming stands elsewhere.
            held = [(0.0, 0), *self._list_told()]
            steps = pairwise(held)
            came = [self.began + when for (_, few), (when, many) in steps for _ in range(few, many)]
        late = np.array([max(0.0, moment - self.first) for moment in came])
        return late if late.any() else late[:0]

    def _list_held(self) -> list[tuple[float, int]]:
        """Return the number of workers over time, as far as it changed."""
        if told := self._list_told():
            return told
        there, held = 0, []
        for when, change in sorted(self.processes.changes):
            there += change
            held.append((max(0.0, when - self.began), there))
        return [entry for entry in held if entry[0] <= self.ended - self.began]

    def _list_told(self) -> list[tuple[float, int]]:
        """Return the same as a run of barrow's own has noted it."""
        events = self.record.columns("event")
        rows = zip(events["time"], events["kind"], events["details"], strict=True)
        return [
            (max(0.0, when - self.began), int(json.loads(details or "{}").get("there", 0)))
            for when, kind, details in rows
            if kind == "workers" and self.began <= when <= self.ended
        ]


class _Processes:
    """What the processes of a run did between two moments."""

    def __init__(self, record: Tables, tasks: Tasks, first: float, last: float) -> None:
        # Tasks come in the order of their beginning: the first of each process stays.
        began = dict(zip(reversed(tasks.process), tasks.started[::-1].tolist(), strict=True))
        table, samples = record.columns("process"), record.columns("sample")
        kinds = dict(zip(table["name"], table["kind"], strict=True))
        workers = {name for name, kind in kinds.items() if kind == "worker"}
        # A cluster may be there while threads of the client do it all; one that took part
        # counts as a whole, with those that stood by.
        # Chunks of barrow's own runs name it by its number alone.
        numbered = dict(zip(table["name"], map(str, table["pid"]), strict=True))
        took_part = any(name in began or numbered[name] in began for name in workers)
        workers = workers if took_part else set()
        names = np.array(samples["process"], object)
        times, cpu = numbers(samples["time"]), numbers(samples["cpu_seconds"])
        held = numbers(samples["rss_bytes"])
        spent, most = {}, {}
        for name, joined, left in zip(*(table[n] for n in ("name", "joined", "left")), strict=True):
            of_it = (names == name) & ~np.isnan(cpu)
            if of_it.any():
                # It may have been at work before anybody looked at it.
                begin = min(joined or first, began.get(name) or began.get(numbered[name]) or last)
                life = max(first, begin), min(last, left or last)
                spent[name] = find_spent(times[of_it], cpu[of_it], *life)
            most[name] = int(np.nanmax(held[names == name], initial=0))
        clients = [name for name, kind in kinds.items() if kind in ("client", "scheduler")]
        # Without workers of its own the client does the tasks: what it does besides is unknown.
        self.serial_seconds = max((spent.get(n, 0.0) for n in clients), default=0.0) * bool(workers)
        self.worker_seconds = sum(spent.get(name, 0.0) for name in workers)
        self.worker_bytes = max((most[name] for name in workers), default=0)
        self.client_bytes = max((most[name] for name in clients), default=0)
        rows = list(
            zip(*(table[n] for n in ("name", "host", "threads", "joined", "left")), strict=True)
        )
        self.threads = [int(row[2]) for row in rows if row[0] in workers and row[2]]
        hosts = {row[1] for row in rows if row[0] in workers or row[0] in clients}
        self.is_one_machine = len(hosts) <= 1
        self.joined = [float(row[3]) for row in rows if row[0] in workers]
        self.changes = [(moment, 1) for moment in self.joined]
        self.changes += [(row[4], -1) for row in rows if row[0] in workers and row[4] is not None]


def find_spent(times: np.ndarray, cpu: np.ndarray, begin: float, end: float) -> float:
    """Return what a process used between two moments, from samples of what it had used until then.

    Where nobody looked, at the edges, it did as much as in between, if most of the time was seen.

    Examples
    --------
    >>> find_spent(np.array([2.0, 4.0, 10.0]), np.array([1.0, 2.0, 5.0]), begin=0.0, end=8.0)
    4.0
    """
    known = np.interp([begin, end], times, cpu)
    seen = min(end, float(times[-1])) - max(begin, float(times[0]))
    is_known_well = seen > 0 and seen >= SEEN_SHARE * (end - begin)
    return float(known[1] - known[0]) * ((end - begin) / seen if is_known_well else 1.0)


def fit_gap(load: Load, stage: Stage, seconds: float) -> Load:
    """Return the load with the gap between tasks that makes a simulation last so long.

    Where it lasts longer even without a gap, tasks have waited for cores, not for anything else.

    Examples
    --------
    >>> load = fit_gap(Load(np.full(10, 1.0)), Stage(workers=1), seconds=12.0)
    >>> round(load.gap_seconds, 3)
    0.2
    """

    rough = put_together(load, max(ENOUGH_TASKS, UNITS_PER_SLOT * stage.slots))
    size = load.count / rough.count

    def lasts(gap: float, waits: float = 1.0) -> float:
        changed = replace(rough, gap_seconds=gap * size, wait_seconds=waits * rough.wait_seconds)
        return simulate(changed, stage, repeats=1).seconds

    if lasts(0.0) > seconds:
        part = _bisect(lambda waits: lasts(0.0, waits), seconds, 1.0)
        return replace(load, wait_seconds=part * load.wait_seconds)
    most = 2.0 * stage.slots * seconds / load.count
    return replace(load, gap_seconds=_bisect(lasts, seconds, most))


def _bisect(lasts: Callable[[float], float], seconds: float, most: float) -> float:
    """Return the number from 0 on for which something lasts so long."""
    low, high = 0.0, most
    for _ in range(FITTING_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if lasts(middle) < seconds else (low, middle)
    return (low + high) / 2


def find_stretch(busy: float, serial: float, cores: float) -> float:
    """Return how many times longer tasks take because they wait for a core.

    Parameters
    ----------
    busy
        Cores that tasks use on average.
    serial
        Of the time, when another process wants a core, too.

    Examples
    --------
    >>> find_stretch(1.0, 0.5, cores=2), find_stretch(2.0, 0.5, cores=2)
    (1.0, 1.25)
    """
    with_it, without = (max(1.0, (busy + others) / cores) for others in (1, 0))
    share = min(1.0, serial)
    return share * with_it + (1 - share) * without


def _share_out(serial_seconds: float, count: int, window_seconds: float) -> float:
    """Return what the client and the scheduler do for one task.

    Heartbeats and samples come by the clock: with long tasks they are nearly all there is.
    """
    of_tasks = (serial_seconds - IDLE_SHARE * window_seconds) / count
    return min(serial_seconds / count, max(LEAST_SCHEDULER_SECONDS, of_tasks))


def _known(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[~np.isnan(values)])
