"""How computing threads get on: step by step in the interpreter, or in compiled code.

Told from another thread of the same process, and not by the clock, which lies on a busy machine:
whoever looks holds the interpreter's lock. A thread that wants a core and sleeps all the same
waits for that lock, so it was interpreting; in compiled code it would run on.

This module is sent by value to workers that run elsewhere: it uses the standard library alone.
"""

import ctypes
import dis
import os
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Iterable
from statistics import median
from types import CodeType, FrameType
from typing import Any

LOOK_SECONDS, ENOUGH_LOOKS = 0.2, 50
"""Between two looks at first; a look at Python takes 3 ms, so they become rarer."""
AT_WORK = 0.5
"""Of a core that a thread wants from one look to the next if it does not wait for something."""
HOLD_SECONDS = 0.002
"""How long the lock is kept: by then who waits for it has fallen asleep."""
STEP_SECONDS = 0.0004
"""Of CPU that a step in the interpreter takes at most."""
FEWEST_STEPS, MOST_STEPS = 3, 10
MOST_LOOPS = 5
Wanted = tuple[float, float]
"""A time, and the seconds that a thread has run or waited for a core until then."""
KnownLoops = dict[CodeType, tuple[tuple[int, int], ...]]
"""Where the loops of a function begin and end."""
PACKAGE = os.path.dirname(os.path.dirname(__file__))
LIBRARIES = (sysconfig.get_paths()["stdlib"], "site-packages", "<frozen", PACKAGE)
"""Where code lies that is not the user's own."""


class Pace:
    """Counts at how many looks threads were inside a loop of the user's own Python.

    Examples
    --------
    >>> Pace().seen
    {'looks': 0, 'loops': {}}
    """

    def __init__(self) -> None:
        self._looks = 0
        self._loops: Counter[str] = Counter()
        self._before: dict[int, Wanted] = {}
        self._known: KnownLoops = {}
        self._due = 0.0

    @property
    def seen(self) -> dict[str, Any]:
        """How many looks there were, and how many found each loop."""
        return {"looks": self._looks, "loops": dict(self._loops.most_common(MOST_LOOPS))}

    def look(self, threads: Iterable[int]) -> None:
        """Look once at threads that compute, if it is time to."""
        now, before = time.monotonic(), self._before
        if now < self._due:
            return
        self._due = now + LOOK_SECONDS * (1 + self._looks / ENOUGH_LOOKS)
        natives = {thread.ident: thread.native_id for thread in threading.enumerate()}
        there = {thread: native for thread in threads if (native := natives.get(thread))}
        self._before = {t: known for t in there if (known := read_wanted(there[t]))}
        again = [thread for thread in self._before if thread in before]
        shares = [divide(before[thread], self._before[thread]) for thread in again]
        # Together: threads that wait for one another's lock want one core in all.
        if sum(shares) < AT_WORK:
            self._looks += len(again)  # they wait for a disk, or for others
            return
        for thread in again:
            self._hold(thread, there[thread])

    def _hold(self, thread: int, native: int) -> None:
        """Keep the lock for a moment, and see what a thread does meanwhile."""
        name, is_waiting = _see(thread, native, self._known)
        is_quick = _takes_short_steps(native) if is_waiting and name else False
        if is_waiting is None or is_quick is None:
            return  # it did not get a core, so nobody knows
        self._looks += 1
        if is_quick:
            self._loops[name] += 1


def find_loop(frame: FrameType | None, known: KnownLoops) -> str:
    """Return the function of the user's own whose loop goes on; empty if there is none.

    Parameters
    ----------
    known
        What was found out about functions; grows.

    Examples
    --------
    >>> import sys
    >>> def count():
    ...     for _ in range(2):
    ...         name = find_loop(sys._getframe(), {})
    ...     return name
    >>> count()
    'count'
    """
    # What calls this package is not what it computes.
    while frame is not None and PACKAGE not in frame.f_code.co_filename:
        if is_own(frame) and frame.f_code not in known:
            known[frame.f_code] = _list_loops(frame.f_code)
        loops = known.get(frame.f_code, ())
        if any(first <= frame.f_lasti <= last for first, last in loops):
            name = frame.f_code.co_qualname.replace("<locals>.", "")
            return name.partition(".<")[0]  # a comprehension is part of its function
        frame = frame.f_back
    return ""


def is_own(frame: FrameType) -> bool:
    """Tell whether code is the user's own, not a library's."""
    return not any(library in frame.f_code.co_filename for library in LIBRARIES)


def read_wanted(native: int | None) -> Wanted | None:
    """Return what a thread has wanted of the cores until now; None if nobody knows."""
    try:
        with open(f"/proc/self/task/{native}/schedstat") as file:
            ran, waited = _count(ctypes.PyDLL(None), file.fileno())[:2]
            return time.monotonic(), (ran + waited) / 1e9
    except (OSError, ValueError):
        return None


def divide(first: Wanted, last: Wanted) -> float:
    """Return the share of a core that a thread wanted from one time to another."""
    return (last[1] - first[1]) / max(1e-9, last[0] - first[0])


def _see(thread: int, native: int, known: KnownLoops) -> tuple[str, bool | None]:
    """Return in which loop a thread is, and whether it waits for the lock that is kept meanwhile.

    None for the second: it did not get a core, so nobody knows.
    """
    place = f"/proc/self/task/{native}"
    try:
        with open(f"{place}/stat") as state, open(f"{place}/schedstat") as spent:
            # Calls of this kind keep the lock. Those of Python let go of it.
            keep = ctypes.PyDLL(None)
            name = find_loop(sys._current_frames().get(thread), known)
            before = _count(keep, spent.fileno())[0]
            keep.usleep(int(1e6 * HOLD_SECONDS))
            ran = _count(keep, spent.fileno())[0] - before
            is_asleep = _read(keep, state.fileno()).rpartition(b") ")[2].startswith(b"S")
    except (OSError, IndexError, ValueError):
        return "", None
    if ran > 0.25e9 * HOLD_SECONDS:
        return name, False
    return name, True if is_asleep else None


def _read(keep: Any, file: int) -> bytes:
    text = ctypes.create_string_buffer(4096)
    n = keep.pread(file, text, 4096, 0)
    return text.raw[: max(0, n)]


def _takes_short_steps(native: int) -> bool | None:
    """Tell whether a thread can let go of the lock very often; None if nobody knows.

    Within one call of compiled code it cannot: either it keeps the lock, or it does not come back
    for it.
    """
    usual = sys.getswitchinterval()
    keep, steps = ctypes.PyDLL(None), []
    place = f"/proc/self/task/{native}"
    try:
        with (
            open(f"{place}/schedstat") as other,
            open(f"{place}/status") as status,
            open("/proc/thread-self/schedstat") as own,
        ):
            sys.setswitchinterval(1e-5)
            for _ in range(MOST_STEPS):
                naps = _count_naps(keep, status.fileno())
                ran, waited = _count(keep, other.fileno())[0], _count(keep, own.fileno())[1]
                time.sleep(0)  # hands over the lock, and asks for it at once
                step = _count(keep, other.fileno())[0] - ran
                # Who gets no core cannot ask in time: then the other's step is as long as it likes.
                is_in_time = _count(keep, own.fileno())[1] - waited < 0.25e9 * STEP_SECONDS
                # A step ends when the other waits for the lock again.
                is_over = _count_naps(keep, status.fileno()) > naps
                steps += [step] if step and is_in_time and is_over else []
    except (OSError, IndexError, ValueError):
        return None
    finally:
        sys.setswitchinterval(usual)
    return median(steps) < 1e9 * STEP_SECONDS if len(steps) >= FEWEST_STEPS else None


def _count(keep: Any, file: int) -> list[int]:
    """Return the nanoseconds that a thread has run, and those it has waited for a core."""
    return [int(number) for number in _read(keep, file).split()]


def _count_naps(keep: Any, file: int) -> int:
    """Return how often a thread gave up its core because it had to wait for something."""
    return int(_read(keep, file).split(b"\nvoluntary_ctxt_switches:")[1].split()[0])


def _list_loops(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Return where loops begin and end in the code of a function."""
    return tuple(
        (step.argval, step.offset)
        for step in dis.get_instructions(code)
        if "BACKWARD" in step.opname and "NO_INTERRUPT" not in step.opname
    )
