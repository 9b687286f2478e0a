"""The fence: a task that asks for more memory than it may use gets a MemoryError.

The kernel refuses to let the private memory of a process grow beyond a limit that
the process sets for itself. While tasks run, that limit is what the process held
before plus what these tasks may use together. NumPy, SciPy, Numba and Python itself
turn the refusal into a MemoryError inside the task: the worker lives, and the chunk
can be split. Where there is no such limit, nothing happens here.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from barrow.ownership import is_own_process
from barrow.running.memory import data_bytes

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

# For what is not the task's own: stacks of new threads, buffers of messages; and in the
# user's own process for whatever else goes on there.
HEADROOM_BYTES = 2**26
FOREIGN_HEADROOM_BYTES = 2**28


class Fence:
    """What the tasks of this process may use together.

    Parameters
    ----------
    headroom_bytes
        For what is not the tasks' own; by default more in a process that is not ours.

    Examples
    --------
    >>> import numpy as np
    >>> fence = Fence()
    >>> with fence.around(2**20):
    ...     try:
    ...         kept = np.ones(2**26)
    ...     except MemoryError:
    ...         print("refused")
    refused
    """

    def __init__(self, headroom_bytes: int | None = None) -> None:
        self._headroom = headroom_bytes
        self._lock = threading.Lock()
        self._budgets: dict[object, int] = {}
        self._held = 0
        self._before: tuple[int, int] | None = None

    @contextmanager
    def around(self, budget_bytes: int) -> Iterator[None]:
        """Let a task use so much memory and no more; 0 for no limit."""
        if not budget_bytes or not self._is_possible():
            yield
            return
        with self._lock:
            if not self._budgets:
                self._before = resource.getrlimit(resource.RLIMIT_DATA)
                self._held = data_bytes()
            inside = object()
            self._budgets[inside] = budget_bytes
            self._set()
        try:
            yield
        finally:
            with self._lock:
                if self._budgets.pop(inside, None) is not None:
                    self._set()

    def lift(self) -> None:
        """Take the fence away from tasks that nobody waits for any more."""
        with self._lock:
            if self._budgets:
                self._budgets.clear()
                self._set()

    def _set(self) -> None:
        """Move the fence to where it belongs now; called with the lock held."""
        assert self._before is not None
        soft, hard = self._before
        if self._budgets:
            headroom = self._headroom
            if headroom is None:
                headroom = HEADROOM_BYTES if is_own_process() else FOREIGN_HEADROOM_BYTES
            wanted = self._held + sum(self._budgets.values()) + headroom
            # Never more than somebody else has allowed this process.
            soft = min((n for n in (soft, hard) if n != resource.RLIM_INFINITY), default=wanted)
            soft = min(soft, wanted)
        try:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        except (OSError, ValueError):
            return  # a system that does not allow it: there is no fence then

    @staticmethod
    def _is_possible() -> bool:
        return resource is not None and hasattr(resource, "RLIMIT_DATA") and data_bytes() > 0


FENCE = Fence()
"""The one fence of this process: a limit of the kernel is for all of it."""
