"""What only a worker itself can see: who waits for the interpreter, what its tasks are doing.

This module is sent by value to workers that run elsewhere: it uses the standard library, what the
worker has loaded anyway, and of barrow only modules that travel with it.
"""

import ctypes
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

from barrow.model.pace import Pace, Wanted, divide, is_own, read_wanted

RARE_SECONDS = 5.0
"""Between two looks that take a millisecond or more."""
LOOKS = 2
TICK_SECONDS = 0.05
LATE_SECONDS, MOST_TURNS = 0.5, 8
SURE_SECONDS = 1.0
MOST_HOT = 5
_MALLINFO = [
    (name, ctypes.c_size_t)
    for names in ("arena ordblks smblks hblks hblkhd", "usmblks fsmblks uordblks fordblks top")
    for name in names.split()
]


class Inside:
    """Measures its own process whenever a heartbeat is due; all numbers grow.

    Examples
    --------
    >>> sorted(Inside().look(threads=()))[:3]
    ['gil_looks', 'gil_waited', 'hot']
    """

    def __init__(self) -> None:
        self._looks = 0
        self._waited = 0.0
        self._hot: Counter[str] = Counter()
        self._pace = Pace()
        self._rare: dict[str, Any] = {}
        self._looked = 0.0
        # From the beginning: a task may block the loop before its first turn.
        self._ticked = time.monotonic()
        self._turns: list[tuple[float, float]] = []
        self._begun: dict[int, tuple[str, Wanted]] = {}

    def tick(self) -> None:
        """Note how late the loop is with this call, one of many in equal distances."""
        now = time.monotonic()
        late = now - self._ticked - TICK_SECONDS
        self._ticked = now
        if late > LATE_SECONDS:
            # Several: the longest of all may be the fault of the machine, the next of a task.
            turns = sorted([*self._turns, (late, time.time())], reverse=True)
            self._turns = turns[:MOST_TURNS]

    def look(self, threads: Iterable[int]) -> dict[str, Any]:
        """Return what is known of this process; ``threads`` are those that compute."""
        computing = frozenset(threads)
        self._pace.look(computing)
        self._see_frames(computing)
        self._wait_for_interpreter()
        now = time.monotonic()
        if now - self._looked > RARE_SECONDS:
            self._looked = now
            self._rare = {**_count_library_threads(), **_read_malloc()}
        return {
            "gil_looks": self._looks,
            "gil_waited": self._waited,
            "hot": dict(self._hot.most_common(MOST_HOT)),
            "turns": self._turns,
            "pace": self._pace.seen,
            **self._rare,
        }

    def weigh(self, running: Mapping[int, str]) -> dict[str, float]:
        """Return the share of a core that each task wants, since it was seen first.

        What it wants is what it uses and what it waits for because others have the cores.

        Parameters
        ----------
        running
            The name of the task in each thread that computes.
        """
        natives = {thread.ident: thread.native_id for thread in threading.enumerate()}
        begun, found = {}, {}
        for thread, name in running.items():
            now = read_wanted(natives.get(thread))
            if now is None:
                continue
            known = self._begun.get(thread)
            begun[thread] = known if known and known[0] == name else (name, now)
            first = begun[thread][1]
            if now[0] - first[0] > SURE_SECONDS:
                found[name] = divide(first, now)
        self._begun = begun
        return found

    def _wait_for_interpreter(self) -> None:
        """Let the interpreter go and take it again: that takes long while others hold it."""
        for _ in range(LOOKS):
            began = time.perf_counter()
            time.sleep(0)
            self._waited += time.perf_counter() - began
            self._looks += 1

    def _see_frames(self, threads: frozenset[int]) -> None:
        for thread in threads:
            # Not kept in a variable: the frame of this call is among them, and so all of them,
            # with what their tasks hold, would stay until the next collection of garbage.
            if name := name_function(sys._current_frames().get(thread)):
                self._hot[name] += 1
        if len(self._hot) > 50 * MOST_HOT:
            self._hot = Counter(dict(self._hot.most_common(MOST_HOT)))


def name_function(frame: FrameType | None) -> str:
    """Return the innermost function that is no library's; empty if there is none.

    Examples
    --------
    >>> import sys
    >>> def fit(): return name_function(sys._getframe())
    >>> fit()
    'fit'
    """
    while frame is not None:
        if is_own(frame):
            return frame.f_code.co_qualname.replace("<locals>.", "")
        frame = frame.f_back
    return ""


def _count_library_threads() -> dict[str, int]:
    """Return how many threads the numerical libraries would use for one call."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return {}
    # Only what is loaded counts; a task that loads more is seen at the next look.
    return {"library_threads": max((p["num_threads"] for p in threadpool_info()), default=1)}


def _read_malloc() -> dict[str, int]:
    """Return the bytes that malloc has handed out, and those it keeps for later."""
    # Made here: a structure of ctypes cannot be sent by value.
    with suppress(OSError, AttributeError):
        ask = ctypes.CDLL(None).mallinfo2
        ask.restype = type("Mallinfo2", (ctypes.Structure,), {"_fields_": _MALLINFO})
        found = ask()
        return {"malloc_used": found.uordblks + found.hblkhd, "malloc_free": found.fordblks}
    return {}
