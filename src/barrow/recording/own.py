"""Sample the processes of a run of barrow's own, from a thread of the client.

Work of a moment gets one sample, at its end: the thread sleeps until there is more to see.
"""

import os
import socket
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

from barrow.errors import OutputError
from barrow.recording.going import announced
from barrow.recording.processes import follow
from barrow.recording.record import RecordWriter
from barrow.recording.sampling import Sampler

TICK_SECONDS = 0.05
PATIENCE_SECONDS = 0.3
"""Runs that are shorter are not followed while they run."""


class OwnSampling:
    """Writes the tables ``process`` and ``sample`` of a run while it lasts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with RecordWriter(Path(tempfile.mkdtemp()) / "record.sqlite") as record:
    ...     with OwnSampling(record) as sampling:
    ...         held = bytearray(10**7)
    >>> sampling.peak_bytes > 10**7
    True
    """

    def __init__(self, record: RecordWriter) -> None:
        self._record = record
        self._host = socket.gethostname()
        self._over = threading.Event()
        self._cpu: dict[int, tuple[float, float]] = {}
        self._thread = threading.Thread(target=self._work, name="barrow-sampler", daemon=True)

    @property
    def peak_bytes(self) -> int:
        """Most that all processes held together."""
        return self._sampler.peak_bytes

    @property
    def cpu_seconds(self) -> float:
        """What all processes have used while they were seen, threads of libraries included."""
        return sum(last - first for first, last in self._cpu.values())

    def __enter__(self) -> "OwnSampling":
        self._sampler = Sampler(follow(os.getpid()), tick_seconds=TICK_SECONDS, is_alone=True)
        self._sampler.tick()
        used = time.process_time()
        self._cpu[os.getpid()] = (used, used)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._sampler.tick()
        self._keep()
        self._sampler.close()

    def _work(self) -> None:
        if not self._over.wait(PATIENCE_SECONDS):
            with announced(self._record.path):
                self._follow()

    def _follow(self) -> None:
        while not self._over.wait(self._sampler.tick_seconds):
            self._sampler.tick()
            if self._sampler.is_due():
                self._keep()
                with suppress(OutputError):  # the run itself will meet it, and say so
                    self._record.flush()

    def _keep(self) -> None:
        samples: list[tuple[Any, ...]] = []
        for when, pid, rss, use in self._sampler.take():
            used = (None,) * 3 if use is None else use[:3]
            if use is not None:
                first, _ = self._cpu.get(pid, (use.cpu_seconds, 0.0))
                self._cpu[pid] = (first, use.cpu_seconds)
            samples.append((when, f"{self._host}/{pid}", rss, None, None, *used, None, None))
        self._record.note_rows("sample", samples)
        processes = [
            (f"{self._host}/{pid}", self._host, pid, joined, self._sampler.gone.get(pid))
            for pid, joined in self._sampler.seen.items()
        ]
        self._record.note_processes(processes, own=os.getpid())


def describe_run() -> dict[str, Any]:
    """Return what the record of a run says of it before it begins."""
    return {
        "kind": "run",
        "status": "running",
        "began": time.time(),
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": sys.argv,
    }
