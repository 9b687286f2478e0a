"""A lookout: sees whether there is still somebody to do the work.

Dask waits for ever for workers that never come, and for a scheduler that is gone. While
a run waits for its tasks, it looks from time to time.
"""

import time
from collections.abc import Callable
from typing import Any

from barrow.errors import ClusterError
from barrow.units import format_seconds

# Between two looks.
LOOK_SECONDS = 1.0
# For an answer; a scheduler that is busy with a large graph takes its time.
ANSWER_SECONDS = 5.0
# Until a connection that was lost must be back.
RECONNECT_SECONDS = 5.0
# Without anybody who can do the work. A job in a queue may take longer to be replaced, but
# then it is better to be told: what is done is kept.
PATIENCE_SECONDS = 360.0
# Until somebody who waits is told so.
TELL_SECONDS = 3.0


class Lookout:
    """Follows the workers of a client while a run waits.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    on_wait
        Called with a sentence when there is nobody to do the work.
    on_look
        Called at every look with the number of workers.
    find_failures
        Returns why workers are not started any more, a sentence for each.
    patience_seconds
        How long there may be nobody; six minutes, if not given.
    """

    def __init__(
        self,
        client: Any,
        *,
        on_wait: Callable[[str], None] | None = None,
        on_look: Callable[[int], None] | None = None,
        find_failures: Callable[[], list[str]] | None = None,
        patience_seconds: float | None = None,
    ) -> None:
        self._client = client
        self._address = str(client.scheduler.address)
        self._on_wait = on_wait or (lambda _: None)
        self._on_look = on_look or (lambda _: None)
        self._find_failures = find_failures or list
        self._patience = PATIENCE_SECONDS if patience_seconds is None else patience_seconds
        self._next = 0.0
        self._since: float | None = None
        self._is_told = False

    @property
    def is_due(self) -> bool:
        """Whether it is time for another look."""
        return time.monotonic() >= self._next

    def list_workers(self) -> set[str] | None:
        """Return the addresses of the workers; None if the scheduler has no time to answer."""
        self._next = time.monotonic() + LOOK_SECONDS
        self.check_connection()
        answer = self._ask(self._client.scheduler.ncores)
        if answer is None:
            return None
        self._on_look(len(answer))
        return set(answer)

    def describe_workers(self) -> dict[str, Any] | None:
        """Return all that the scheduler says about its workers; None if it has no time."""
        answer = self._ask(self._client.scheduler.identity)
        return None if answer is None else dict(answer["workers"])

    def check_connection(self) -> None:
        """Wait a little for a connection that was lost, and raise if it stays so."""
        deadline = time.monotonic() + RECONNECT_SECONDS
        while self._client.status != "running":
            if self._client.status in ("closed", "closing") or time.monotonic() > deadline:
                raise ClusterError(
                    f"The scheduler at {self._address} is gone, and its workers with it. What was "
                    "finished is kept where the result has a place (to=): start the cluster "
                    "again, and run the same once more."
                )
            time.sleep(0.05)

    def wait_for(self, whom: str, why: str = "") -> None:
        """Go on waiting for somebody who can do the work, or raise if it was too long."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        waited = now - self._since
        failures = self._find_failures()
        if failures or waited >= self._patience:
            lines = [f"Waited {format_seconds(waited)} for {whom} at {self._address}; none came."]
            lines += failures or ([why] if why else [])
            lines.append(
                "What was finished is kept where the result has a place (to=): see to the "
                "workers, and run the same once more."
            )
            raise ClusterError("\n".join(lines))
        if waited >= min(TELL_SECONDS, self._patience / 2) and not self._is_told:
            self._is_told = True
            left = format_seconds(self._patience - waited)
            self._on_wait(f"0 {whom} at {self._address}: waiting, for {left} at most.")

    def stop_waiting(self) -> None:
        """Note that there is somebody."""
        self._since, self._is_told = None, False

    def _ask(self, request: Any) -> Any:
        try:
            return self._client.sync(request, callback_timeout=ANSWER_SECONDS)
        except (OSError, TimeoutError, RuntimeError, AttributeError):
            # Busy, or gone: then the client will notice, and the next look tells.
            return None
