"""Diagnose a record while it grows: what cannot wait until the end is said at once."""

import threading
import time
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from barrow.model.finding import Finding

if TYPE_CHECKING:
    from barrow.diagnosing.facts import Tables

URGENT = ("MEM04", "WRK04", "WRK07", "MEM02")
"""Rules that make sense before the end: stuck or slow, nobody there, killed."""
SIGNS = frozenset({"stalled", "long", "lost", "memory"})
"""Events without which none of them finds anything."""
LOOK_SECONDS = 5.0
SHARE, RAREST_SECONDS = 0.02, 30.0
"""Of one core that looking may take: a large record is looked at less often, but not so rarely
that what stands still is named too late."""


class Live:
    """Looks at a growing record from a thread, and tells each finding once.

    Parameters
    ----------
    read
        Returns the record as it is now.
    tell
        Called with a finding that is new, or has become graver.
    on_look
        Called at each look, before the record is read.
    """

    def __init__(
        self,
        read: Callable[[], "Tables"],
        tell: Callable[[Finding], None],
        *,
        on_look: Callable[[], None] | None = None,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._read = read
        self._tell = tell
        self._on_look = on_look or (lambda: None)
        self._look_seconds = look_seconds
        self._told: set[tuple[str, str]] = set()
        self._n_signs = 0
        self._spent_seconds = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="barrow-doctor", daemon=True)

    def __enter__(self) -> "Live":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        pause = self._look_seconds
        while not self._over.wait(pause):
            try:
                self.look()
            except Exception as error:
                # The program goes on without a doctor.
                warnings.warn(f"The doctor had to stop: {error}", stacklevel=1)
                return
            pause = max(self._look_seconds, min(RAREST_SECONDS, self._spent_seconds / SHARE))

    def look(self) -> None:
        """Look once."""
        self._on_look()
        began = time.thread_time()
        record = self._read()
        n_signs = sum(kind in SIGNS for kind in record.columns("event")["kind"])
        self._spent_seconds = time.thread_time() - began
        if n_signs == self._n_signs:
            return
        self._n_signs = n_signs
        # Only now: it loads pandas, into a process that may belong to somebody else.
        from barrow.diagnosing.diagnose import diagnose

        # Loading is done once: counted like a look, it would put off the next for a minute.
        began = time.thread_time()
        found = diagnose(record, URGENT)
        self._spent_seconds += time.thread_time() - began
        for finding in found:
            if (finding.code, finding.severity) not in self._told:
                self._told.add((finding.code, finding.severity))
                self._tell(finding)
