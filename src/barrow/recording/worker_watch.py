"""What watches Dask's workers from inside, and the nannies beside them.

This module is sent by value to workers that run elsewhere: of barrow it uses only modules that
travel with it (:data:`barrow.recording.attaching.TRAVELLING`).
"""

import logging
import os
import socket
import time
from collections.abc import Callable
from typing import Any

from distributed.diagnostics.plugin import NannyPlugin, WorkerPlugin

from barrow.recording.inside import TICK_SECONDS, Inside
from barrow.recording.sending import (
    CRUMB_BYTES,
    NAME,
    LogHandler,
    Sender,
    crumb_path,
    guarded,
    name_key,
)


class WorkerWatch(WorkerPlugin):  # type: ignore[misc]
    """Adds to the heartbeat what Dask does not say, and sends warnings to the record."""

    name = NAME
    idempotent = True

    def __init__(self, place: str, host: str) -> None:
        self._place = place
        self._recorder_host = host

    def setup(self, worker: Any) -> None:
        """Begin to watch."""
        worker.metrics[NAME] = self.measure
        from tornado.ioloop import PeriodicCallback

        self._inside = Inside()
        self._ticking = PeriodicCallback(self._inside.tick, 1000 * TICK_SECONDS)
        self._ticking.start()
        self._read_first = _count_read()
        # Workers in the process of the client leave this to the client.
        self._is_crumbing = bool(worker.nanny) and socket.gethostname() == self._recorder_host
        if self._is_crumbing:
            self.sender = Sender(self._place)
            self._executing: dict[Any, str] = {}
            self._crumb = os.open(crumb_path(self._place, os.getpid()), os.O_CREAT | os.O_WRONLY)
            self._handler = LogHandler(self.sender)
            logging.getLogger("distributed").addHandler(self._handler)

    def teardown(self, worker: Any) -> None:
        """Cease to watch."""
        worker.metrics.pop(NAME, None)
        self._ticking.stop()
        if handler := getattr(self, "_handler", None):
            logging.getLogger("distributed").removeHandler(handler)
            self.sender.close()
            self._is_crumbing = False
            os.close(self._crumb)

    @guarded
    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Leave a crumb: what this process computes, where it is found if it is killed."""
        if not self._is_crumbing or (finish != "executing" and start != "executing"):
            return
        if finish == "executing":
            self._executing[key] = name_key(key)
        else:
            self._executing.pop(key, None)
        names = "\n".join(list(self._executing.values())[:8])
        # The kernel keeps what was written when the process is killed.
        os.pwrite(self._crumb, names.encode()[:CRUMB_BYTES].ljust(CRUMB_BYTES), 0)

    def measure(self, worker: Any) -> dict[str, Any]:
        """Return what this process has used."""
        totals = getattr(worker, "digests_total", {})
        found: dict[str, Any] = {
            "received": int(totals.get(("gather-dep", "network", "bytes"), 0)),
            "sent": int(totals.get(("get-data", "network", "bytes"), 0)),
            "cpu": time.process_time(),
            "inside": self._look_inside(worker),
            "wanted": self._weigh_tasks(worker),
        }
        try:
            with open("/proc/self/status") as file:
                line = next(line for line in file if line.startswith("VmHWM:"))
            found["peak"] = int(line.split()[1]) * 1024
            with open("/proc/self/io") as file:
                counts = dict(line.split(": ") for line in file)
            found["read"], found["written"] = int(counts["read_bytes"]), int(counts["write_bytes"])
        except (OSError, StopIteration):
            pass
        return found

    def _look_inside(self, worker: Any) -> dict[str, Any]:
        found = self._inside.look(getattr(worker, "active_threads", ()))
        found["read_bytes"] = _count_read() - self._read_first
        return found

    def _weigh_tasks(self, worker: Any) -> dict[str, float]:
        running = dict(getattr(worker, "active_threads", {}))
        return self._inside.weigh({thread: name_key(key) for thread, key in running.items()})


class NannyWatch(NannyPlugin):  # type: ignore[misc]
    """Notes with which status a worker ended: Dask keeps it to itself."""

    name = NAME
    idempotent = True
    restart = False

    def __init__(self, place: str, host: str) -> None:
        self._place = place
        self._recorder_host = host

    def setup(self, nanny: Any) -> None:
        """Begin to watch."""
        if socket.gethostname() != self._recorder_host:
            return
        self.sender = Sender(self._place)
        nanny._on_worker_exit_sync = self._wrap(nanny, nanny._on_worker_exit_sync)
        if nanny.process is not None:
            nanny.process.on_exit = self._wrap(nanny, nanny.process.on_exit)

    def teardown(self, nanny: Any) -> None:  # noqa: ARG002
        """Send the rest."""
        if hasattr(self, "sender"):
            self.sender.flush()

    def _wrap(self, nanny: Any, on_exit: Callable[[Any], None]) -> Callable[[Any], None]:
        def note(code: Any) -> None:
            self._note_exit(nanny, code)
            on_exit(code)

        return note

    @guarded
    def _note_exit(self, nanny: Any, code: Any) -> None:
        if isinstance(code, int) and nanny.worker_address is not None:
            reason = describe_exit(code) if code else "closed"
            self.sender.put("left", nanny.worker_address, time.time(), reason, True)


def describe_exit(code: int) -> str:
    """Return how a process ended, in words.

    Examples
    --------
    >>> describe_exit(-9), describe_exit(3)
    ('killed by signal 9', 'ended with status 3')
    """
    return f"killed by signal {-code}" if code < 0 else f"ended with status {code}"


def _count_read() -> int:
    """Return the bytes that this process has read from files, cached ones included."""
    try:
        with open("/proc/self/io") as file:
            return int(next(line for line in file if line.startswith("rchar:")).split()[1])
    except (OSError, StopIteration):
        return 0
