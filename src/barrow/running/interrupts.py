"""Let Ctrl-C end a run where nothing is half noted, and only there.

Python may raise KeyboardInterrupt between any two instructions: after a chunk is
stored and before it is noted, or in the middle of tidying up. While a run is
shielded the signal is kept, and raised at the next point that is declared
interruptible: where a chunk is computed in this thread, or where this thread waits
for others. What follows it is tidying up, which takes a second or two; further
signals have to wait for that.

SIGTERM, as ``timeout`` and SLURM send it, is treated alike and ends in SystemExit.
A handler that somebody else has set stays, and so does all in other threads than the
main one: Python tells of signals only there.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

PATIENCE_SECONDS = 5.0
"""Tidying up that takes longer than this may be interrupted as well."""


class _Listener:
    """Hears the signals of one run."""

    def __init__(self) -> None:
        self.is_shielded = False
        self.heard: int | None = None
        self.is_raised = False
        self._heard_seconds = 0.0

    def hear(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - given by Python
        """Take a signal."""
        now = time.monotonic()
        is_repeated = self.heard is not None
        if is_repeated and now - self._heard_seconds < PATIENCE_SECONDS:
            return
        self.heard, self._heard_seconds = number, now
        if is_repeated or not self.is_shielded:
            self.throw()

    def throw(self) -> NoReturn:
        """Raise what the signal means."""
        self.is_raised = True
        if self.heard == signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM)  # as a shell would report it
        raise KeyboardInterrupt


_listener: _Listener | None = None


@contextmanager
def listening() -> Iterator[None]:
    """Hear signals during a run, if nobody else does."""
    global _listener
    usual: dict[int, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    is_main = threading.current_thread() is threading.main_thread()
    ours = [n for n in usual if signal.getsignal(n) is usual[n]] if is_main else []
    if not ours or _listener is not None:
        yield
        return
    _listener = listener = _Listener()
    try:
        for number in ours:
            signal.signal(number, listener.hear)
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) == listener.hear:
                signal.signal(number, usual[number])
        _listener = None


@contextmanager
def shielded() -> Iterator[None]:
    """Keep a signal until something interruptible comes, or until the end."""
    listener = _own_listener()
    if listener is None or listener.is_shielded:
        yield
        return
    listener.is_shielded = True
    try:
        yield
    finally:
        listener.is_shielded = False
        if listener.heard is not None and not listener.is_raised:
            listener.throw()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a signal through here, also one that came before."""
    listener = _own_listener()
    if listener is None or not listener.is_shielded:
        yield
        return
    if listener.heard is not None:
        listener.throw()
    listener.is_shielded = False
    try:
        yield
    finally:
        listener.is_shielded = True
    if listener.is_raised:
        listener.throw()  # a function of the user has swallowed it


def _own_listener() -> _Listener | None:
    is_main = threading.current_thread() is threading.main_thread()
    return _listener if is_main else None
