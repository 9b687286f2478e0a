"""Measure how much of its time a function holds Python's global lock.

While the function runs in a thread, this one asks for the lock again and again.
How late it gets it tells how long the function held it. That is more robust than
timing two threads against one, which a busy machine upsets; what this thread had to
wait for a core is known to the kernel and does not count.
"""

import threading
import time
from collections.abc import Callable

_NAP_SECONDS = 0.0002
# A nap ends late by this much on any machine.
_LATE_SECONDS = 0.001
# What is seen in fewer naps, or in less time, may be chance.
_ENOUGH_NAPS, _ENOUGH_SECONDS = 10, 0.02
# A machine so busy that this thread hardly gets a core is not watched for longer.
_LONGEST_SECONDS = 0.5


def measure_lock_share(call: Callable[[], object]) -> float:
    """Return the share of its time for which a call keeps other threads waiting.

    A short call is repeated until this thread has seen enough of it.

    Examples
    --------
    >>> import time
    >>> measure_lock_share(lambda: time.sleep(0.05)) < 0.2
    True
    """
    began = threading.Event()
    enough = threading.Event()
    done = threading.Event()
    failure: list[BaseException] = []

    def run() -> None:
        began.set()
        try:
            call()
            while not enough.is_set():
                call()
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run, daemon=True)
    start, queued = time.perf_counter(), _seconds_without_core()
    thread.start()
    began.wait()
    waited, naps = 0.0, 0
    while not done.is_set():
        before = time.perf_counter()
        time.sleep(_NAP_SECONDS)
        late = time.perf_counter() - before - _NAP_SECONDS
        if late > _LATE_SECONDS:
            waited += late
        naps, spent = naps + 1, time.perf_counter() - start
        if spent > (_ENOUGH_SECONDS if naps >= _ENOUGH_NAPS else _LONGEST_SECONDS):
            enough.set()
    queued = _seconds_without_core() - queued
    spent, waited = time.perf_counter() - start - queued, waited - queued
    thread.join()
    if failure:
        raise failure[0]
    return min(1.0, max(0.0, waited / max(spent, 1e-9)))


def _seconds_without_core() -> float:
    """Return how long this thread was ready to run but had no core, where that can be known."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
