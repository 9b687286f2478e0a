"""What a scheduler is told of graphs: in which spans they were made, how much they carry.

This module is sent by value to schedulers that run elsewhere: of barrow it uses only modules that
travel with it.
"""

from collections.abc import Mapping
from typing import Any

from barrow.recording.layers import Layers
from barrow.recording.sending import LONGEST_KEY, clean

MOST_WEIGHED = 100
"""Tasks of a graph whose size is looked at; the others are taken to be like them."""


class Labels:
    """The span of each group of tasks."""

    def __init__(self) -> None:
        self._spans: dict[str, int | None] = {}
        self._layers = Layers()
        self._labels: dict[Any, int] = {}

    def expect(self, client: str, span: int | None, layers: Mapping[str, int]) -> None:
        """Take in to which spans the graph belongs that a client sends next."""
        self._spans[client] = span
        self._layers.add(layers)

    def add(self, client: str, tasks: Any) -> None:
        """Label the tasks of a graph."""
        span, layers, labels = self._spans.pop(client, None), self._layers, self._labels
        if span is None and not layers:
            return
        for key in tasks:
            group = _group_of(key)
            if group not in labels:
                found = layers.find(group) if layers and isinstance(group, str) else None
                label = span if found is None else found
                if label is not None:
                    labels[group] = label

    def find(self, key: Any) -> int | None:
        """Return the span of a task."""
        return self._labels.get(_group_of(key)) if self._labels else None

    def forget(self, key: Any) -> None:
        """Forget a task that is a group of its own."""
        if not isinstance(key, tuple):
            self._labels.pop(key, None)


def _group_of(key: Any) -> Any:
    return key[0] if isinstance(key, tuple) and key else key


def weigh(scheduler: Any, tasks: Any) -> dict[str, Any]:
    """Return how many bytes a graph carries, and the step that carries most."""
    from dask.sizeof import sizeof

    keys = list(tasks)
    some = keys[:: max(1, len(keys) // MOST_WEIGHED)]
    sizes: dict[str, int] = {}
    for key in some:
        if (ts := scheduler.tasks.get(key)) is not None and ts.run_spec is not None:
            step = str(ts.prefix.name)
            sizes[step] = sizes.get(step, 0) + int(sizeof(ts.run_spec))
    if not sizes:
        return {}
    heaviest = max(sizes, key=lambda step: sizes[step])
    total = sum(sizes.values()) * len(keys) // len(some)
    return {"bytes": total, "heaviest": clean(heaviest, LONGEST_KEY)}
