"""What watches Dask's scheduler from inside: every attempt at a task, every worker.

This module is sent by value to schedulers that run elsewhere: of barrow it uses only modules that
travel with it (:data:`barrow.recording.attaching.TRAVELLING`). No error in here may disturb the
program: each is noted in the record, and the program goes on.
"""

import json
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin

from barrow.model.site import JOB_TOPIC
from barrow.recording.attempts import Attempts
from barrow.recording.graphs import Labels, weigh
from barrow.recording.live_page import hide_page, read_command, show_page
from barrow.recording.sending import (
    LONGEST_KEY,
    NAME,
    Sender,
    clean,
    connect,
    guarded,
    name_key,
    plain,
)
from barrow.recording.standing import Standing

SPAN_OPERATION = "barrow-span"
BEAT_SECONDS = 0.5
INSIDE_SECONDS = 2.0
"""How often what workers see of themselves is written down anew."""


class SchedulerWatch(SchedulerPlugin):  # type: ignore[misc]
    """Notes every attempt at a task, and what becomes of workers.

    Parameters
    ----------
    place
        Folder of the recorder's socket.
    host
        Host of the recorder: elsewhere, rows go by way of the client, as events.
    """

    name = NAME
    idempotent = True

    def __init__(self, place: str, host: str) -> None:
        self._place = place
        self._recorder_host = host

    def attach(self, scheduler: Any) -> None:
        """Begin to watch."""
        from tornado.ioloop import PeriodicCallback

        self.scheduler = scheduler
        self.sender = self._open_sender()
        self._host = socket.gethostname()
        self._workers: dict[str, str] = {}
        self._labels = Labels()
        self._attempts = Attempts(scheduler, self.sender, self._workers, self._labels)
        self._closing: set[str] = set()
        self._activity: Any = None
        self._activity_before: dict[str, float] = {}
        self._activity_before = self._sum_activity()
        self._inside: dict[str, Any] = {}
        self._inside_noted = 0.0
        self._standing = Standing()
        self._weight: dict[str, Any] = {}
        scheduler.stream_handlers[SPAN_OPERATION] = self.take_span
        self.sender.put(
            "hello", {**self._here(), "kind": "scheduler", "address": scheduler.address}
        )
        for address in list(scheduler.workers):
            self.add_worker(scheduler, address)
        self._show_page()
        self._beat = PeriodicCallback(self.beat, 1000 * BEAT_SECONDS)
        scheduler.periodic_callbacks[NAME] = self._beat
        self._beat.start()

    @guarded
    def _show_page(self) -> None:
        command = read_command(self._place)
        self._has_page = command is None or show_page(self.scheduler, command) is not None

    async def start(self, scheduler: Any) -> None:
        """Begin to watch, on a scheduler that was sent this plugin."""
        self.attach(scheduler)

    def detach(self) -> None:
        """Cease to watch."""
        self._beat.stop()
        self.scheduler.periodic_callbacks.pop(NAME, None)
        hide_page(self.scheduler)
        self.beat()
        self._note_inside()
        self.sender.flush()

    @guarded
    def take_span(self, client: str, span: int | None, layers: Mapping[str, int]) -> None:
        """Take in to which spans the graph belongs that this client sends next."""
        self._labels.expect(client, span, layers)

    @guarded
    def update_graph(self, scheduler: Any, *, client: str = "", tasks: Any = (), **_: Any) -> None:
        """Label the tasks of a graph with their spans, and weigh it."""
        self._weight = weigh(scheduler, tasks)
        self._labels.add(client, tasks)

    @guarded
    def transition(
        self, key: Any, start: str, finish: str, *_: Any, stimulus_id: str = "", **kwargs: Any
    ) -> None:
        """Note when a task becomes ready, is handed out, and ends."""
        self._attempts.move(key, start, finish, stimulus_id, kwargs)

    @guarded
    def add_worker(self, scheduler: Any, worker: str) -> None:
        """Note that a worker has come."""
        state = scheduler.workers[worker]
        host = self._host if self._is_here(worker, state) else state.host
        self._workers[worker] = f"{host}/{state.pid}"
        self.sender.put(
            "hello",
            {
                "host": host,
                "pid": state.pid,
                "kind": "worker",
                "address": worker,
                "label": clean(str(state.name), LONGEST_KEY),
                "threads": state.nthreads,
                "limit_bytes": state.memory_limit or None,
            },
        )
        self._note("joined", f"Worker {state.name} joined.", self._workers[worker])

    @guarded
    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:  # noqa: ARG002
        """Forget what a worker had in hand."""
        self._attempts.forget_worker(worker)

    @guarded
    def log_event(self, topic: str, msg: Any) -> None:
        """Note events of the cluster that matter."""
        action = msg.get("action") if isinstance(msg, dict) else None
        if topic == "all" and action == "remove-worker":
            self._on_removal(msg)
        elif action == "worker-status-change" and "prev-status" in msg:
            if str(msg["status"]).startswith("clos"):
                self._closing.add(topic)
            word = {"paused": "paused", "running": "resumed"}.get(msg["status"])
            if word == "paused" or msg["prev-status"] == "paused":
                process = self._workers.get(topic, topic)
                self._note(word or msg["status"], f"Worker {topic} is {msg['status']}.", process)
        elif topic == "worker-restart-memory":
            worker = str(msg.get("worker"))
            self.sender.put("left", worker, time.time(), "killed at its memory limit", True)
            process = self._workers.get(worker, worker)
            text = f"Worker {worker} held {msg.get('rss')} bytes and was killed by its nanny."
            self._note("memory", text, process, rss=msg.get("rss"))
        elif topic == "scheduler" and action == "update-graph":
            metrics = {k: plain(v) for k, v in (msg.get("metrics") or {}).items()}
            process = f"{self._host}/{os.getpid()}"
            self._note("graph", "A graph arrived.", process, **metrics, **self._weight)
            self._weight = {}
        elif topic == JOB_TOPIC:
            self._note("job", str(msg), f"{self._host}/{os.getpid()}")
        elif action in ("worker-ttl-timed-out", "no-workers-timeout-exceeded"):
            self._note(action, f"Dask said {action}.", clean(str(topic)))

    def _on_removal(self, msg: Mapping[str, Any]) -> None:
        worker = str(msg["worker"])
        is_ending = worker in self._closing or self.scheduler.status.name != "running"
        expected = bool(msg.get("expected")) or is_ending
        self._closing.discard(worker)
        processing, computed = msg.get("processing-tasks", ()), msg.get("lost-computed-tasks", ())
        self._attempts.lose(worker, processing)
        reason = "closed" if expected else "lost"
        self.sender.put("left", worker, time.time(), reason, False)
        text = f"Worker {worker} {'left' if expected else 'was lost'}."
        self._note(
            "left" if expected else "lost",
            text,
            self._workers.get(worker, worker),
            processing=[name_key(key) for key in list(processing)[:20]],
            n_processing=len(processing),
            n_recomputed=len(computed),
        )

    @guarded
    def beat(self) -> None:
        """Note what Dask holds on each worker, and what it has measured of all tasks."""
        if self.scheduler.plugins.get(NAME) is not self:
            self._beat.stop()  # somebody took this plugin out
            return
        if not self._has_page:
            self._show_page()
        for address, state in list(self.scheduler.workers.items()):
            metrics = state.metrics
            if "memory" not in metrics:
                continue
            process, memory = self._workers.get(address), state.memory
            own = metrics.get(NAME) or {}
            if process and own.get("inside"):
                self._inside[process] = own["inside"]
            if self._is_here(address, state):
                self.sender.put("level", process, int(memory.managed), int(memory.spilled))
            else:
                self.sender.put(
                    "sample",
                    time.time(),
                    process,
                    max(int(metrics["memory"]), own.get("peak", 0)),
                    int(memory.managed),
                    int(memory.spilled),
                    own.get("cpu"),
                    own.get("read"),
                    own.get("written"),
                    own.get("received"),
                    own.get("sent"),
                )
        activity = self._sum_activity()
        if activity and activity != self._activity:
            self._activity = activity
            self.sender.put("fact", f"activity {self.scheduler.id[-12:]}", activity)

        for kind, text, details in self._standing.look(self.scheduler):
            address = details.get("address", "")
            self._note(kind, text, self._workers.get(address, address), **details)
        if time.monotonic() - self._inside_noted > INSIDE_SECONDS:
            self._note_inside()

    def _sum_activity(self) -> dict[str, float]:
        """Return what Dask has measured of all tasks since it is watched, with keys as text."""
        found = {
            " | ".join(map(str, key)): float(value)
            for key, value in getattr(self.scheduler, "cumulative_worker_metrics", {}).items()
            if isinstance(key, tuple)
        }
        # A cluster that was up has worked for others before.
        before = self._activity_before
        since = {key: value - before.get(key, 0.0) for key, value in found.items()}
        return {key: value for key, value in since.items() if value > 0}

    def _note_inside(self) -> None:
        """Write down what workers see of themselves."""
        self._inside_noted = time.monotonic()
        self.sender.put("fact", f"inside {self.scheduler.id[-12:]}", self._inside)

    async def close(self) -> None:
        """Send the rest when the scheduler ends."""
        self.beat()
        self._note_inside()
        self.sender.flush()

    def _note(self, kind: str, message: str, process: str, **details: Any) -> None:
        text = json.dumps({"process": process, **details})
        self.sender.put("event", time.time(), kind, clean(message), text)

    def _here(self) -> dict[str, Any]:
        return {"host": self._host, "pid": os.getpid()}

    def _is_here(self, address: str, state: Any) -> bool:
        if address.startswith("inproc://") or state.host in ("127.0.0.1", "::1", "localhost"):
            return True
        return bool(state.host == self.scheduler.address.rpartition(":")[0].rpartition("/")[2])

    def _open_sender(self) -> Sender:
        if socket.gethostname() == self._recorder_host:
            try:
                connect(self._place).close()
            except OSError:
                pass
            else:
                return Sender(self._place)
        scheduler, topic = self.scheduler, f"{NAME}-{os.path.basename(self._place)}"

        def emit(rows: list[Any]) -> None:
            scheduler.loop.add_callback(scheduler.log_event, topic, rows)

        return Sender(self._place, emit)
