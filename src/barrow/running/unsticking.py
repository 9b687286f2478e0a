"""Free workers that are paused for ever.

Dask pauses a worker that holds too much, and waits until it holds less. What is no result of a
task cannot go to disk, so nothing changes: the run waits for ever. A worker with a long task
looks the same from outside, but it computes, and is left alone.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from barrow.running.memory import trim
from barrow.units import format_bytes, format_seconds

QUIET_SECONDS = 5.0
"""Without any task that ended, until somebody looks; and between two looks."""
STUCK_SECONDS = 15.0
"""Of a pause in which nothing happens, until it is said and something is done."""
SPILLABLE_SHARE = 0.3
"""Of what a worker holds: with more that can go to disk it may go on by itself."""
EXPENDABLE_BYTES = 10 * 2**20
"""Results that somebody else's worker may lose at most; they would be computed again."""

Tell = Callable[[str, Mapping[str, Any]], None]


class Unsticking:
    """Follows paused workers; says which are stuck, and frees them.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    tell
        Called with a sentence and its numbers.
    act
        Whether to free them: first by giving back free memory, then by a restart.
    is_own
        Whether they may be restarted by a signal: processes of this machine that are replaced.
    """

    def __init__(
        self,
        client: Any,
        tell: Tell,
        *,
        act: bool = True,
        is_own: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._tell = tell
        self._act = act
        self._is_own = is_own
        self._stuck_seconds = STUCK_SECONDS
        self._clock = clock
        self._looked = clock()
        self._since: dict[str, float] = {}
        self._tried: dict[str, int] = {}

    @property
    def is_due(self) -> bool:
        """Whether nothing has happened for so long that somebody should look."""
        return self._clock() - self._looked > min(QUIET_SECONDS, self._stuck_seconds / 3)

    def note_progress(self) -> None:
        """Note that a task has ended."""
        if not self._since:
            self._looked = self._clock()

    def see(self, workers: Mapping[str, Any]) -> None:
        """Take in what the scheduler says about its workers."""
        now = self._looked = self._clock()
        stuck = {address: facts for address, facts in workers.items() if is_stuck(facts)}
        for address in self._since.keys() - stuck.keys():
            del self._since[address]
            self._tried.pop(address, None)
        for address, facts in stuck.items():
            since = self._since.setdefault(address, now)
            tried = self._tried.get(address, 0)
            # Each remedy gets its time before the next one.
            if now - since >= self._stuck_seconds * (1 + tried / 2) and tried < 2:
                self._tried[address] = tried + 1
                self._free(address, facts, now - since, tried)

    def _free(self, address: str, facts: Mapping[str, Any], seconds: float, tried: int) -> None:
        metrics = facts["metrics"]
        said = (
            f"Worker {facts.get('name', address)} has been paused for {format_seconds(seconds)} "
            f"and computes nothing: it holds {format_bytes(metrics['memory'])} of "
            f"{format_bytes(facts['memory_limit'])}, and only "
            f"{format_bytes(metrics.get('managed_bytes', 0))} of that are results."
        )
        numbers = {"code": "MEM04", "worker": address, "memory": metrics["memory"]}
        if not self._act:
            if not tried:
                self._tell(f"{said} It is stuck: restart it.", {**numbers, "remedy": "none"})
            return
        remedy = "trim" if tried == 0 else "restart"
        self._tell(f"{said} Remedy: {remedy}.", {**numbers, "remedy": remedy})
        with suppress(OSError, TimeoutError, RuntimeError, ValueError):
            if remedy == "trim":
                self._client.run(trim, workers=[address], on_error="ignore")
            elif self._is_own:
                pids = self._client.run(os.getpid, workers=[address], on_error="ignore")
                os.kill(pids[address], signal.SIGTERM)
            elif metrics.get("managed_bytes", 0) < EXPENDABLE_BYTES:
                self._client.restart_workers([address], timeout=30, raise_for_error=False)


def is_stuck(worker: Mapping[str, Any]) -> bool:
    """Tell whether a worker is paused, does nothing, and has nothing to put on disk.

    Examples
    --------
    >>> metrics = {"memory": 900, "managed_bytes": 10, "task_counts": {}}
    >>> is_stuck({"status": "paused", "metrics": metrics})
    True
    >>> is_stuck({"status": "paused", "metrics": {**metrics, "task_counts": {"executing": 1}}})
    False
    """
    metrics = worker.get("metrics") or {}
    computing = (metrics.get("task_counts") or {}).get("executing", 0)
    held = metrics.get("memory", 0)
    is_empty = metrics.get("managed_bytes", 0) < SPILLABLE_SHARE * held
    return bool(worker.get("status") == "paused" and not computing and is_empty)
