"""Measure what a chain of steps costs: time at several sizes, peak memory, crowding."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from barrow import pinning
from barrow.model.applied import evaluate
from barrow.model.cost import Cost
from barrow.model.curve import Points
from barrow.model.metered import Meter, metered
from barrow.model.reading import count_stored_bytes
from barrow.model.source import Source
from barrow.probing.ahead import read_ahead
from barrow.probing.lock import measure_lock_share
from barrow.probing.peaks import measure_peak
from barrow.probing.sizes import PLACES, Sample
from barrow.probing.writing import measure_copying, measure_storing
from barrow.shared import Ranges

# Timing may take a second, or this share of the run; peak and store come on top.
BUDGET_SECONDS = 0.8
BUDGET_SHARE = 0.03
# Of work that is over soon, not more than this.
SHORT_SHARE = 0.2
# But so much, if it is not tiny: of calls that are all overhead one learns little about threads.
LEAST_SECONDS = 0.06
# Work that is over so soon is not worth more than a look.
SHORT_WORK_SECONDS = 1.0
# Work that takes so long is worth a process of its own in which peaks are measured exactly.
LONG_WORK_SECONDS = 4.0
# Calls shorter than this are repeated.
SHORT_SECONDS = 0.02
# So are those that take so much longer than those of the last size would suggest.
SUSPICIOUS = 2.0
# A first call that takes so much longer than the second was not typical.
WARM_UP_SECONDS = 0.005
# Threads wait for one another if a function holds Python's lock for more of its time.
MUCH_LOCKED = 0.3
# So little slower, side by side, that a function which takes long need not be asked why.
LITTLE_SLOWER = 1.25
# Not worth a thread: the work would be over before that is known.
TINY_WORK_SECONDS = 0.1
PROCESS_SLOWDOWN = 1.05
# Taking turns costs a little: of threads that wait for one another.
TURNS = 1.1


def measure_cost(
    target: Source,
    samples: Sequence[Sample],
    *,
    total_items: int,
    cores: int,
    budget_bytes: int,
    is_stored: bool,
    may_fail: bool = False,
    library_threads: int = 1,
) -> Cost:
    """Return the cost of a chain of steps.

    Parameters
    ----------
    total_items
        Items of the whole work: what takes longer may be measured for longer.
    budget_bytes
        What one task may use, roughly: if it comes near, its peak is measured exactly.
    is_stored
        Whether the answer goes to a store, so that writing counts.
    may_fail
        Whether the function may raise on some of the samples: not on all of them.
    library_threads
        What a task may use of numerical libraries.
    """
    began = time.perf_counter()
    with pinning.library_threads(library_threads), ThreadPoolExecutor(cores) as pool:
        ahead = read_ahead(target, samples)
        timed = target
        if ahead is not None:
            timed, samples = ahead.target, ahead.samples
        timing = _Timing(timed, pool, cores, total_items, may_fail)
        for sample in samples:
            try:
                if not timing.take(sample):
                    break
            except MemoryError:
                if not timing.points:
                    raise
                break  # chunks will have to be smaller than this
        if timing.answer is None and timing.failure is not None:
            raise timing.failure
        threads, processes = timing.slowdowns()
        read_seconds_per_byte = timing.read_seconds_per_byte
        predicted, quick = timing.predicted, timing.quick_samples()
        if ahead is not None:
            # Decoding may take more memory than the task itself: one size could not tell.
            quick = [samples[0], *samples[1:][-1:]]
            read_seconds_per_byte = ahead.read_seconds_per_byte
            predicted += read_seconds_per_byte * count_stored_bytes(target, target.everything)
        peak = measure_peak(
            target,
            quick,
            budget_bytes=budget_bytes,
            may_be_slow=predicted > LONG_WORK_SECONDS,
            may_fail=may_fail,
        )
    writing = (measure_storing if is_stored else measure_copying)(timing.answer)
    return Cost(
        points=tuple(timing.points),
        spread=timing.spread,
        thread_slowdown=threads,
        process_slowdown=processes,
        core_slowdown=tuple(timing.on_cores),
        read_seconds_per_byte=read_seconds_per_byte,
        write_seconds_per_chunk=writing.seconds_per_chunk,
        write_seconds_per_byte=writing.seconds_per_byte,
        peak_base_bytes=peak.base,
        peak_per_item=peak.per_item,
        peak_margin=peak.margin,
        peak_slack_bytes=peak.slack_bytes,
        startup_seconds=timing.startup,
        probing_seconds=time.perf_counter() - began,
    )


class _Timing:
    """Times tasks of growing size, alone and side by side, within a budget."""

    def __init__(
        self,
        target: Source,
        pool: ThreadPoolExecutor,
        cores: int,
        total_items: int,
        may_fail: bool,
    ) -> None:
        self._target = target
        self._pool = pool
        self._cores = cores
        self._total_items = total_items
        self._may_fail = may_fail
        self._began = time.perf_counter()
        # Each thread has a meter of its own.
        self._lanes = [_Lane(target, may_fail) for _ in range(cores)]
        self._samples: list[Sample] = []
        self._full_seconds: list[float] = []
        self._together: list[tuple[int, float]] = []
        self.on_cores: list[tuple[int, float]] = []
        self.points: list[tuple[int, float]] = []
        self.spread = 0.0
        self.startup = 0.0
        self.read_seconds_per_byte = 0.0
        self.answer: Any = None

    @property
    def predicted(self) -> float:
        """Seconds of the whole work on one core, as far as is known."""
        if not self.points:
            return 0.0
        return self._full_seconds[-1] * self._total_items / self.points[-1][0]

    @property
    def failure(self) -> Exception | None:
        """What the function raised, if it did."""
        return next((lane.failure for lane in self._lanes if lane.failure is not None), None)

    def take(self, sample: Sample) -> bool:
        """Measure one size; False if there is no time for it, or no need."""
        is_needed = False
        if not self.points:
            expected = self._warm_up(sample.blocks[0])
        else:
            expected = self._full_seconds[-1] * sample.items / self.points[-1][0]
            # Of short work a second size is worth knowing only if it is a small part of it.
            is_small_part = len(self.points) == 1 and 4 * expected < self.predicted
            if self.predicted < SHORT_WORK_SECONDS and not is_small_part:
                return False
            # The first may have been all overhead, and threads wait for one another in it.
            is_needed = TINY_WORK_SECONDS < self.predicted < SHORT_WORK_SECONDS
        # Alone and side by side; of the first size at least once.
        trials = min(len(PLACES), int(self._seconds_left(expected, sample) / (2 * expected)))
        is_tiny = expected * self._total_items / sample.items < SHORT_WORK_SECONDS / 4
        if is_tiny:
            trials = min(1, trials)
        if self._may_fail and not self.points:
            trials = len(PLACES)  # it may fail at the first of them
        if trials < 1 and self.points and not is_needed:
            return False
        if self.points and (trials > 1 or is_needed):
            # Memory that nobody has used yet, and caches: tasks of a run meet that only once.
            self._lanes[0].time(sample.blocks[0])
        alone = []
        for block in sample.blocks[: max(1, trials)]:
            alone.append(self._time_alone(block, expected))
            is_known = self.answer is not None or not self._may_fail
            if is_known and self._seconds_left(expected, sample) < 2 * alone[-1].seconds:
                break  # it took longer than expected
        blocks = sample.blocks[: len(alone)]
        full = [once.seconds for once in alone]
        computing = [max(1e-7, once.seconds - once.read_seconds) for once in alone]
        stored = sum(count_stored_bytes(self._target, block) for block in blocks)
        self.read_seconds_per_byte = sum(once.read_seconds for once in alone) / max(1, stored)
        self.points.append((sample.items, fmean(computing)))
        self.spread = pstdev(full) / max(1e-9, fmean(full))
        self._full_seconds.append(max(1e-7, fmean(full)))
        self._samples.append(sample)
        if self._cores > 1 and self.predicted > TINY_WORK_SECONDS:
            turns = len(blocks)
            if self.predicted < SHORT_WORK_SECONDS:
                turns = min(len(self.points), turns)  # what is left is for the second size
            found = []
            for turn in range(turns):
                found.append(self._time_together(blocks, turn, alone))
                if self._seconds_left(expected, sample) < 2 * fmean(full):
                    break
            # Others may have been in the way, of caches and memory too: the least is ours.
            slower, longer = (min(looks) for looks in zip(*found, strict=True))
            if slower < 1:
                # Nobody is slower alone: there it met memory that nobody had used yet.
                self.points[-1] = (sample.items, slower * self.points[-1][1])
                self._full_seconds[-1] *= slower
            self._together.append((sample.items, max(1.0, slower)))
            self.on_cores.append((sample.items, max(1.0, longer)))
        return True

    def _seconds_left(self, task_seconds: float, sample: Sample) -> float:
        predicted = task_seconds * self._total_items / sample.items
        least = LEAST_SECONDS if predicted > TINY_WORK_SECONDS else 0.0
        short = max(least, SHORT_SHARE * predicted)
        allowed = max(min(BUDGET_SECONDS, short), BUDGET_SHARE * predicted)
        return allowed - (time.perf_counter() - self._began)

    def _warm_up(self, block: Ranges) -> float:
        """Return the time of a typical call: the first may import, compile, or fill caches."""
        first = self._lanes[0].time(block).seconds
        again = self._lanes[0].time(block).seconds
        if first > 2 * again + WARM_UP_SECONDS:
            self.startup = first - again
            self._began += self.startup  # that was not for timing
        return max(1e-7, min(first, again))

    def _time_alone(self, block: Ranges, expected: float) -> "_Once":
        once = self._lanes[0].time(block)
        if once.seconds < SHORT_SECONDS or once.seconds > SUSPICIOUS * expected:
            # It may have met an interruption, or had to wait for memory that nobody had used
            # yet; the better of two rarely does.
            once = min(once, self._lanes[0].time(block), key=lambda o: o.seconds)
        if once.answer is not None:
            self.answer = once.answer
        return once

    def _time_together(
        self, blocks: Sequence[Ranges], turn: int, alone: Sequence["_Once"]
    ) -> tuple[float, float]:
        """Return how many times longer tasks take when every core has one, and use a core."""
        calls = max(1, round(SHORT_SECONDS / self._full_seconds[-1]))
        picks = [(turn + core) % len(blocks) for core in range(self._cores)]

        def work(lane: _Lane, pick: int) -> float:
            start = time.perf_counter()
            for _ in range(calls):
                lane.time(blocks[pick])
            return (time.perf_counter() - start) / calls

        began = time.process_time()
        spent = list(self._pool.map(work, self._lanes, picks))
        cpu = (time.process_time() - began) / (calls * self._cores)
        slower = fmean(spent) / fmean(alone[pick].seconds for pick in picks)
        longer = cpu / max(1e-7, fmean(alone[pick].cpu_seconds for pick in picks))
        # One after the other they would take no longer: what does is other people's work.
        return min(slower, TURNS * self._cores), min(longer, float(self._cores))

    def slowdowns(self) -> tuple[Points, Points]:
        """Return how much slower tasks get side by side, in threads and in processes."""
        if self._cores == 1:
            return (), ()
        if not self._together:
            return ((1, float(self._cores)),), ((1, PROCESS_SLOWDOWN),)
        size, slower = self._together[-1]
        is_affordable = self._full_seconds[-1] < BUDGET_SECONDS / 4
        locked = self._lock_share() if is_affordable or slower > LITTLE_SLOWER else 0.0
        if locked < MUCH_LOCKED:
            # What large tasks wait for is bandwidth or other users: processes wait for it too.
            return tuple(self._together), ((size, slower),)
        # Only one at a time has the lock, whatever a busy machine made of the measurement;
        # and passing it on takes time.
        least = self._cores * min(1.05, 1.3 * locked)
        threads = tuple((items, max(least, value)) for items, value in self._together)
        return threads, ((size, PROCESS_SLOWDOWN),)

    def _lock_share(self) -> float:
        block = self._samples[-1].blocks[0]
        return measure_lock_share(lambda: self._lanes[0].time(block))

    def quick_samples(self) -> list[Sample]:
        """Return sizes that can be run a few times more."""
        pairs = list(zip(self._samples, self._full_seconds, strict=True))
        quick = [sample for sample, seconds in pairs if seconds < 5 * SHORT_SECONDS]
        return quick or [Sample(pairs[0][0].items, pairs[0][0].blocks[:1])]


@dataclass(frozen=True)
class _Once:
    seconds: float
    cpu_seconds: float
    """Of the whole process: libraries may decode in threads of their own."""
    read_seconds: float
    answer: Any


class _Lane:
    """Runs tasks in one thread and times reading apart."""

    def __init__(self, target: Source, may_fail: bool) -> None:
        self._may_fail = may_fail
        self._meter = Meter()
        self.failure: Exception | None = None
        self._target = metered(target, self._meter)

    def time(self, block: Ranges) -> _Once:
        self._meter.reset()
        start, began = time.perf_counter(), time.process_time()
        answer = None
        try:
            answer = evaluate(self._target, block)
        except Exception as error:
            if not self._may_fail:
                raise
            self.failure = error
        seconds, cpu = time.perf_counter() - start, time.process_time() - began
        return _Once(seconds, cpu, self._meter.seconds, answer)
