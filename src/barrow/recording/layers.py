"""In which span the layers of Dask's collections were made.

This module is sent by value to schedulers that run elsewhere: it uses the standard library alone.
"""

from collections.abc import Mapping


class Layers:
    """The spans in which layers of Dask's collections were made.

    Examples
    --------
    Tasks that were fused bear the names of all their parts, the last one in full: it counts. If
    that was made in no span, the others do if all were made in the same one.

    >>> layers = Layers()
    >>> layers.add({"load-ab12": 7, "clip-cd34": 8})
    >>> layers.find("load-ab12"), layers.find("load-clip-cd34"), layers.find("load-mean-ef56")
    (7, 8, 7)
    >>> layers.find("load-ef56"), layers.find("clip-load-mean-ef56")
    (None, None)
    """

    def __init__(self) -> None:
        self._spans: dict[str, int] = {}
        self._by_prefix: dict[str, set[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._spans)

    def add(self, spans: Mapping[str, int]) -> None:
        """Take in more layers."""
        self._spans.update(spans)
        for name, span in spans.items():
            self._by_prefix.setdefault(name.rpartition("-")[0] or name, set()).add(span)

    def find(self, group: str) -> int | None:
        """Return the span of a group of tasks, by its name."""
        name = group
        while name not in self._spans:
            _, dash, name = name.partition("-")
            if not dash:
                break
        else:
            return self._spans[name]
        parts = f"-{group.rpartition('-')[0]}"
        found: set[int] = set()
        for prefix, spans in self._by_prefix.items():
            if f"-{prefix}-" in parts:
                found |= spans
        return found.pop() if len(found) == 1 else None
