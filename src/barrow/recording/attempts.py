"""Every attempt at a task, as a scheduler sees it: from when it is ready to what becomes of it.

This module is sent by value to schedulers that run elsewhere: of barrow it uses only modules that
travel with it.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from barrow.recording.graphs import Labels
from barrow.recording.sending import LONGEST_KEY, Sender, clean, name_key

MOST_DEPENDENCIES = 200
"""Inputs of one task that are looked at for the bytes it has to fetch."""
_ALIVE = ("processing", "queued", "no-worker")


class Attempts:
    """Follows tasks through a scheduler, and sends a row for each attempt that has ended.

    Parameters
    ----------
    workers
        What the record calls the process of each worker, by its address; grows.
    """

    def __init__(
        self, scheduler: Any, sender: Sender, workers: Mapping[str, str], labels: Labels
    ) -> None:
        self._scheduler = scheduler
        self._sender = sender
        self._workers = workers
        self._labels = labels
        self._ready: dict[Any, tuple[float, str | None, int]] = {}
        self._last_done: tuple[str, Any] = ("", None)
        self._assigned: dict[Any, tuple[float, str, int | None]] = {}
        self._failures: dict[Any, int] = {}
        self._lost: dict[Any, str] = {}

    def lose(self, worker: str, keys: Iterable[Any]) -> None:
        """Note that a worker is gone which had these tasks in hand."""
        self._lost.update(dict.fromkeys(keys, worker))

    def forget_worker(self, worker: str) -> None:
        """Forget what a worker had in hand."""
        self._lost = {key: at for key, at in self._lost.items() if at != worker}

    def move(self, key: Any, start: str, finish: str, stimulus_id: str, facts: Any) -> None:
        """Take in that a task goes from one state to another."""
        if start == "processing":
            if finish == "memory":
                self._last_done = (stimulus_id, key)
                self._send(key, "done", None, **facts)
            elif finish == "erred":
                text = facts.pop("exception_text", None)
                self._send(key, "lost" if text is None else "failed", text, **facts)
            else:
                self._end(key, finish, stimulus_id)
        if finish in _ALIVE:
            now, ts = time.time(), self._scheduler.tasks[key]
            if key not in self._ready:
                cause = self._find_cause(ts, stimulus_id)
                self._ready[key] = (now, cause, len(ts.dependencies))
            if finish == "processing":
                worker = ts.processing_on
                if worker is not None:
                    self._assigned[key] = (now, worker.address, _count_missing(ts, worker))
        elif finish == "forgotten":
            self._failures.pop(key, None)
            self._labels.forget(key)

    def _find_cause(self, ts: Any, stimulus_id: str) -> str | None:
        """Return the key of the task by whose end another one has become ready."""
        stimulus, key = self._last_done
        if stimulus != stimulus_id or self._scheduler.tasks.get(key) not in ts.dependencies:
            return None
        return name_key(key)

    def _end(self, key: Any, finish: str, stimulus_id: str) -> None:
        """Note a task that was handed out and did not come back."""
        address = self._lost.pop(key, None)
        if address is not None:
            self._send(key, "lost", "Its worker left before it was done.", worker=address)
        elif finish == "waiting" or "task-erred" in stimulus_id:
            self._send(key, "failed", "It raised, and was tried again.")
        else:
            self._send(key, "cancelled", None)

    def _send(
        self,
        key: Any,
        outcome: str,
        error: str | None,
        *,
        worker: str | None = None,
        startstops: Any = (),
        thread: int | None = None,
        nbytes: int | None = None,
        **_: Any,
    ) -> None:
        now = time.time()
        assigned, address, missing = self._assigned.pop(key, (now, worker or "", None))
        ready, waited_for, inputs = self._ready.pop(key, (None, None, None))
        spent = {"compute": 0.0, "transfer": 0.0, "disk-read": 0.0}
        began, ended = None, None
        for part in startstops or ():
            action, first, last = part["action"], part["start"], part["stop"]
            spent[action] = spent.get(action, 0.0) + last - first
            began = first if began is None else min(began, first)
            if action == "compute" or ended is None:
                ended = last
        attempt = self._failures.get(key, 0) + 1
        if error is None and outcome == "lost":
            error = f"{attempt} workers died that it was given to: Dask tries it no more."
        if outcome != "done":
            self._failures[key] = attempt
        ts = self._scheduler.tasks.get(key)
        self._sender.put(
            "dask_task",
            None,
            clean(str(ts.prefix.name) if ts is not None else "", LONGEST_KEY),
            name_key(key),
            self._labels.find(key),
            self._workers.get(worker or address),
            thread,
            ready,
            waited_for,
            inputs,
            assigned if began is None else began,
            now if ended is None else ended,
            spent["compute"],
            spent["transfer"],
            spent["disk-read"],
            None,
            missing if spent["transfer"] else 0,
            nbytes,
            None,
            attempt,
            outcome,
            None if error is None else clean(error),
        )


def _count_missing(ts: Any, worker: Any) -> int | None:
    """Return the bytes that a worker must fetch for a task, and not for another one already."""
    dependencies = ts.dependencies
    if not dependencies:
        return 0
    if len(dependencies) > MOST_DEPENDENCIES:
        return None
    needed = worker.needs_what
    missing = [dts for dts in dependencies if needed.get(dts) == 1]
    return int(sum(dts.get_nbytes() for dts in missing))
