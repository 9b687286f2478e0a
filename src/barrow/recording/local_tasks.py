"""Note the tasks of Dask's schedulers without a cluster: threads, processes, one after another."""

import os
import socket
import threading
import time
from typing import Any

from dask.callbacks import Callback

from barrow.recording.layers import Layers
from barrow.recording.sending import LONGEST_KEY, Sender, clean, name_key
from barrow.recording.spans import current_span, layers_since


class LocalTasks(Callback):  # type: ignore[misc]
    """Notes every task that Dask runs without a cluster.

    A task begins when it is handed to the pool, or when the thread it runs in has ended the one
    before: Dask tells the first and not the second.
    """

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self._host = socket.gethostname()
        self._local = threading.local()
        self._threads = 0
        self._processes: set[int] = set()

    def _start(self, dsk: Any) -> None:  # noqa: ARG002
        local = self._local
        # A computation may begin another one in the same thread; Dask tells us of the outer one.
        local.given = {}
        local.free = {}
        local.began = time.time()
        local.ready = {}
        local.span = current_span()
        local.layers = Layers()
        local.layers.add(layers_since(0))
        local.labels = {}

    def _pretask(self, key: Any, dsk: Any, state: Any) -> None:  # noqa: ARG002
        self._local.given[key] = time.time()

    def _posttask(self, key: Any, result: Any, dsk: Any, state: Any, worker_id: Any) -> None:  # noqa: ARG002
        now, local = time.time(), self._local
        given = local.given.pop(key, now)
        started = max(given, local.free.get(worker_id, given))
        local.free[worker_id] = now
        for waiting in state["dependents"].get(key, ()):
            if waiting not in state["waiting"]:
                local.ready[waiting] = now
        ready = min(given, local.ready.pop(key, local.began))
        self._note(key, worker_id, ready, started, now, result, "done")
        if is_process(worker_id):
            if worker_id not in self._processes:
                self._processes.add(worker_id)
                facts = {"kind": "worker", "address": f"process {worker_id}", "threads": 1}
                self.sender.put("hello", {"pid": worker_id, **facts})
        elif len(local.free) > self._threads:
            self._threads = len(local.free)
            facts = {"kind": "client", "address": "threads", "threads": self._threads}
            self.sender.put("hello", {"pid": os.getpid(), **facts})

    def _finish(self, dsk: Any, state: Any, errored: bool) -> None:  # noqa: ARG002
        if errored:
            now = time.time()
            for key, given in self._local.given.items():
                # Which of those that ran has raised, Dask does not tell.
                self._note(key, None, given, given, now, None, "failed")
        self._local.given.clear()

    def _note(
        self,
        key: Any,
        worker_id: Any,
        ready: float,
        started: float,
        ended: float,
        result: Any,
        outcome: str,
    ) -> None:
        # Not above: this module is loaded while Dask itself is.
        from dask.utils import key_split

        local = self._local
        group = key[0] if isinstance(key, tuple) and key else key
        if local.layers and isinstance(group, str) and group not in local.labels:
            local.labels[group] = local.layers.find(group)
        span = local.labels.get(group)
        nbytes = getattr(result, "nbytes", None)
        process, thread = f"{self._host}/{os.getpid()}", worker_id
        if is_process(worker_id):
            process, thread = f"{self._host}/{worker_id}", None
        self.sender.put(
            "dask_task",
            None,
            clean(str(key_split(key)), LONGEST_KEY),
            name_key(key),
            local.span if span is None else span,
            process,
            thread,
            ready,
            None,
            None,
            started,
            ended,
            ended - started,
            0.0,
            0.0,
            None,
            0,
            nbytes if isinstance(nbytes, int) else None,
            None,
            1,
            outcome,
            None,
        )


def is_process(worker_id: Any) -> bool:
    """Tell whether Dask means a process: numbers of threads are addresses.

    Examples
    --------
    >>> is_process(4711), is_process(threading.get_ident()), is_process(None)
    (True, False, False)
    """
    return isinstance(worker_id, int) and worker_id < 2**31
