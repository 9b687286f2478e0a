"""Spans: names for parts of a program.

A span is kept in the client. It reaches Dask's tasks by the names of what was built while
it was open, not by annotations: these would change how tasks are fused.
"""

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

MOST_LAYERS = 100_000
"""Layers whose span is remembered; those made later belong to where they are handed in."""

_open_spans: ContextVar[tuple[int, ...]] = ContextVar("barrow_spans", default=())
_counter = itertools.count(1)
_listeners: list[Callable[..., None]] = []
_layers: dict[str, int] = {}
"""The span in which each layer of a Dask collection was made."""


@contextmanager
def span(name: str) -> Iterator[int]:
    """Name a part of a program: what happens inside belongs to it in the record.

    Spans can be nested. A Dask task belongs to the innermost span in which its collection was
    built; or, if that was in none, in which it was handed in. Where tasks are fused, the last
    one counts. How Dask fuses tasks is not changed. Dask's data frames are built anew when they
    are optimised: for them the span counts in which they are computed.

    Without :func:`barrow.watch` a span does nothing.

    Examples
    --------
    >>> import barrow
    >>> with barrow.span("load"):
    ...     with barrow.span("decode"):
    ...         pass
    """
    parents = _open_spans.get()
    # Unique among all processes of a program.
    number = (os.getpid() << 24) + next(_counter)
    started = time.time()
    row = (number, parents[-1] if parents else None, str(name), started)
    token = _open_spans.set((*parents, number))
    _tell(*row, None)
    try:
        yield number
    finally:
        _open_spans.reset(token)
        _tell(*row, time.time())


def current_span() -> int | None:
    """Return the innermost span that is open here."""
    spans = _open_spans.get()
    return spans[-1] if spans else None


def listen(listener: Callable[..., None]) -> Callable[[], None]:
    """Have all spans told to somebody; return what ends it."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def note_layer(name: Any) -> None:
    """Remember that a layer of a Dask collection was made now."""
    number = current_span()
    if number is not None and _listeners and isinstance(name, str) and len(_layers) < MOST_LAYERS:
        _layers.setdefault(name, number)


def layers_since(count: int) -> dict[str, int]:
    """Return the layers that belong to a span, without the first ones."""
    return dict(itertools.islice(_layers.items(), count, None))


def _tell(*row: Any) -> None:
    for listener in list(_listeners):
        listener("span", *row)
