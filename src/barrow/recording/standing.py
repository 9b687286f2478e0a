"""How a scheduler stands while it runs: what waits though nobody works, what takes very long.

Tasks that never end leave no row in a record. Without what is noted here a run that is stuck
looks like one that is silent. Sent by value to schedulers that run elsewhere.
"""

import time
from collections.abc import Iterator
from typing import Any

from barrow.recording.sending import NAME, name_key

FIRST_SECONDS = 3.0
"""How long something lasts before it is noted; then again when it has lasted 1.5 times as long."""
MOST_NAMED = 20

Noted = tuple[str, str, dict[str, Any]]
"""Kind, a sentence, and the numbers of an event."""


class Standing:
    """Looks at a scheduler again and again, and says what has gone on for long."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[float, float]] = {}

    def look(self, scheduler: Any) -> list[Noted]:
        """Return what is worth an event now."""
        found = dict(self._find(scheduler))
        now = time.time()
        said = []
        for key in self._since.keys() - found.keys():
            del self._since[key]
        for key, (kind, text, details) in found.items():
            since, due = self._since.setdefault(key, (now, now + FIRST_SECONDS))
            if now >= due:
                self._since[key] = since, now + 0.5 * (now - since)
                said.append((kind, text, {"since": since, "seconds": now - since, **details}))
        return said

    def _find(self, scheduler: Any) -> Iterator[tuple[str, Noted]]:
        waiting = _count_waiting(scheduler)
        states = [_describe(worker) for worker in list(scheduler.workers.values())]
        if waiting and not any(state["executing"] for state in states):
            text = f"{waiting} tasks wait, and none of {len(states)} workers computes."
            details = {
                "waiting": waiting,
                "unrunnable": len(scheduler.unrunnable),
                "workers": states[:MOST_NAMED],
                "n_workers": len(states),
            }
            yield "stalled", ("stalled", text, details)
        for worker in list(scheduler.workers.values()):
            wanted = (worker.metrics.get(NAME) or {}).get("wanted") or {}
            for ts, seconds in list(worker.executing.items())[:MOST_NAMED]:
                if seconds < FIRST_SECONDS:
                    continue
                key = name_key(ts.key)
                details = {
                    "address": worker.address,
                    "key": key,
                    "step": str(ts.prefix.name),
                    "elapsed": float(seconds),
                    "status": worker.status.name,
                    "wanted": wanted.get(key),
                }
                yield f"long {key}", ("long", f"{key} has run for {seconds:.0f} s.", details)


def _count_waiting(scheduler: Any) -> int:
    """Return the tasks that could begin if somebody took them."""
    queued, unrunnable = len(scheduler.queued), len(scheduler.unrunnable)
    return queued + unrunnable + sum(len(w.processing) for w in scheduler.workers.values())


def _describe(worker: Any) -> dict[str, Any]:
    counts = worker.metrics.get("task_counts") or {}
    return {
        "address": worker.address,
        "name": str(worker.name),
        "status": worker.status.name,
        # Tasks that are fetched or handed out a moment ago are work as well.
        "executing": len(worker.executing)
        + counts.get("executing", 0)
        + counts.get("fetch", 0)
        + counts.get("flight", 0),
        "managed": int(worker.memory.managed),
        "rss": int(worker.metrics.get("memory", 0)),
        "limit": int(worker.memory_limit or 0),
    }
