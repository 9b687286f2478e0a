"""Sample a tree of processes often, and keep few samples: peaks stay, plains are thinned.

Memory is read every 20 ms, all processes at the same moment, because the peak of all
together cannot be had from the peaks of each. What is kept of a stretch of time is its end,
the moment at which all together held most, and the peak of each process.
"""

import time
from collections.abc import Callable, Iterator

from barrow.recording.processes import ProcessTree, Use

TICK_SECONDS = 0.02
FIND_SECONDS = 0.1
LARGEST_SHARE = 0.02
"""Of one core that sampling may take; with very many processes it becomes rarer."""
NOTABLE = 1.01
"""A peak is kept if it is so much more than what is kept anyway."""

SampleRow = tuple[float, int, int, Use | None]
"""Time, process number, resident bytes, and what it has used if that was read."""


class Sampler:
    """Reads a tree when it is time and gives back the samples worth keeping.

    Parameters
    ----------
    is_alone
        Whether to begin with the root alone: looking for others takes milliseconds.

    Examples
    --------
    >>> import os
    >>> from barrow.recording.processes import follow
    >>> sampler = Sampler(follow(os.getpid()))
    >>> sampler.tick()
    >>> {row[1]: row[2] for row in sampler.take()}[os.getpid()] > 10**6
    True
    """

    def __init__(
        self,
        tree: ProcessTree,
        *,
        tick_seconds: float = TICK_SECONDS,
        is_alone: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tree = tree
        self._is_alone = is_alone
        self._clock = clock
        self._began = self._stretch_began = clock()
        self._looked = self._find_cost = 0.0
        self._shortest_tick = tick_seconds
        self.tick_seconds = tick_seconds
        self.peak_bytes = 0
        """Most that all processes held together."""
        self.seen: dict[int, float] = {}
        """When each process was seen first."""
        self.gone: dict[int, float] = {}
        """When each was found to have ended, until somebody takes it out."""
        self._kept_peaks: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._most: dict[int, int] = {}
        self._peaks: dict[int, tuple[float, int]] = {}
        self._most_total = 0
        self._clear()

    def tick(self) -> None:
        """Read the memory of all processes."""
        began = time.perf_counter()
        now = self._clock()
        if not self.seen:
            self._looked = self._began
            if not self._is_alone:
                self._tree.find()
        elif now - self._looked >= max(FIND_SECONDS, self._find_cost / LARGEST_SHARE):
            self._looked = now
            self._tree.find()
            self._find_cost = time.perf_counter() - began
            began = time.perf_counter()
        held = self._tree.read_memory()
        for pid in held.keys() - self.seen.keys():
            if self._looked == self._began and (use := self._tree.read_use(pid)) is not None:
                self._kept_peaks[pid] = use.peak_bytes or 0  # from before the run
            self.seen[pid] = now
        for pid in self._last.keys() - held.keys():
            self.gone[pid] = now
        total = sum(held.values())
        if total > self._most_total:
            self._most_total, self._most_time, self._most = total, now, held
        for pid, rss in held.items():
            if rss > self._peaks.get(pid, (0.0, 0))[1]:
                self._peaks[pid] = (now, rss)
        self.peak_bytes = max(self.peak_bytes, total)
        self._last_time, self._last, self._last_total = now, held, total
        spent = time.perf_counter() - began
        self.tick_seconds = max(self._shortest_tick, spent / LARGEST_SHARE)

    def is_due(self) -> bool:
        """Tell whether a stretch is over."""
        now = self._clock()
        return now - self._stretch_began >= choose_stretch(now - self._began)

    def take(self) -> list[SampleRow]:
        """Return what is worth keeping of the stretch that ends now."""
        rows = list(self._choose())
        self._stretch_began = self._clock()
        self._clear()
        return rows

    def close(self) -> None:
        """Let go of the tree; what was seen stays."""
        self._tree.close()

    def _choose(self) -> Iterator[SampleRow]:
        uses = {pid: self._tree.read_use(pid) for pid in self._last}
        kept = dict(self._last)
        if self._most_total > NOTABLE * self._last_total:
            for pid, rss in self._most.items():
                kept[pid] = max(rss, kept.get(pid, 0))
                yield self._most_time, pid, rss, None
        for pid, (when, rss) in self._peaks.items():
            use = uses.get(pid)
            # The kernel's count sees what comes and goes between two looks.
            if use is not None and use.peak_bytes and use.peak_bytes > self._kept_peaks.get(pid, 0):
                rss = max(rss, use.peak_bytes)
            if rss > NOTABLE * kept.get(pid, 0):
                kept[pid] = rss
                yield when, pid, rss, None
        for pid, rss in self._last.items():
            yield self._last_time, pid, rss, uses[pid]
        for pid, rss in kept.items():
            self._kept_peaks[pid] = max(rss, self._kept_peaks.get(pid, 0))

    def _clear(self) -> None:
        self._most_total = 0
        self._most_time = self._last_time = self._clock()
        self._most, self._peaks = {}, {}
        self._last_total = sum(self._last.values())


def choose_stretch(elapsed_seconds: float) -> float:
    """Return over how many seconds samples are thinned.

    Short at first, so that a short run has a curve; then so that any run has some thousand.

    Examples
    --------
    >>> [choose_stretch(s) for s in (0, 2, 60, 3600, 86400)]
    [0.1, 0.2, 0.5, 3.6, 10.0]
    """
    return min(10.0, max(min(0.5, max(0.1, elapsed_seconds / 10)), elapsed_seconds / 1000))
