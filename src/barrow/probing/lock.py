"""Measure how much of its time a function holds Python's global lock.

While the function runs in a thread, this one asks for the lock again and again.
How late it gets it tells how long the function held it. That is more robust than
timing two threads against one, which a busy machine upsets.
"""

import threading
import time
from collections.abc import Callable

_NAP_SECONDS = 0.0002
# A nap ends late by this much on any machine.
_LATE_SECONDS = 0.001


def measure_lock_share(call: Callable[[], object]) -> float:
    """Return the share of its time for which a call keeps other threads waiting.

    Examples
    --------
    >>> import time
    >>> measure_lock_share(lambda: time.sleep(0.05)) < 0.2
    True
    """
    began = threading.Event()
    done = threading.Event()
    failure: list[BaseException] = []

    def run() -> None:
        began.set()
        try:
            call()
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run, daemon=True)
    start = time.perf_counter()
    thread.start()
    began.wait()
    waited = 0.0
    while not done.is_set():
        before = time.perf_counter()
        time.sleep(_NAP_SECONDS)
        late = time.perf_counter() - before - _NAP_SECONDS
        if late > _LATE_SECONDS:
            waited += late
    spent = time.perf_counter() - start
    thread.join()
    if failure:
        raise failure[0]
    return min(1.0, waited / max(spent, 1e-9))
