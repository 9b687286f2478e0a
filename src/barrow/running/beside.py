"""Look at what this process computes, from a thread beside it."""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from barrow.model.pace import LOOK_SECONDS, Pace


class Beside:
    """Looks now and then at the threads of this process that are at work.

    Examples
    --------
    >>> beside = Beside()
    >>> with beside.looking("this run"):
    ...     total = sum(range(10))
    >>> beside.seen
    {'looks': 0, 'loops': {}}
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_busy = threading.Event()
        self._at_work: set[int] = set()
        self._pid = 0
        self._work: Any = None
        self._pace = Pace()

    @property
    def seen(self) -> Mapping[str, Any]:
        """What was seen of this work so far."""
        return self._pace.seen

    @contextmanager
    def looking(self, work: Any) -> Iterator[None]:
        """Look at this thread while it does a part of some work."""
        me = threading.get_ident()
        with self._lock:
            if self._work is not work:
                self._work, self._pace = work, Pace()
            if self._pid != os.getpid():
                # No thread comes along into a process that is forked.
                self._pid, self._at_work = os.getpid(), set()
                threading.Thread(target=self._look, name="barrow-beside", daemon=True).start()
            self._at_work.add(me)
            self._is_busy.set()
        try:
            yield
        finally:
            with self._lock:
                self._at_work.discard(me)
                if not self._at_work:
                    self._is_busy.clear()

    def _look(self) -> None:
        while True:
            self._is_busy.wait()
            time.sleep(LOOK_SECONDS)
            self._pace.look(tuple(self._at_work))


BESIDE = Beside()
"""Of this process."""
