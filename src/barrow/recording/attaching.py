"""Begin to watch a scheduler or a client when it starts in a watched process.

From the scheduler the watching reaches all its workers and their nannies, wherever they run; from
a client it reaches a scheduler that is elsewhere.
"""

import functools
import os
from typing import Any

from barrow.model import pace
from barrow.recording import (
    attempts,
    graphs,
    inside,
    layers,
    live_page,
    scheduler_watch,
    sending,
    standing,
    worker_watch,
)
from barrow.recording.joining import Watched, current
from barrow.recording.scheduler_watch import SPAN_OPERATION, SchedulerWatch
from barrow.recording.sending import NAME
from barrow.recording.spans import current_span, layers_since
from barrow.recording.worker_watch import NannyWatch, WorkerWatch

TRAVELLING = (
    *(attempts, graphs, inside, layers, live_page, pace),
    *(scheduler_watch, sending, standing, worker_watch),
)
"""Modules that are sent to other processes, where barrow may not be installed."""

_here: dict[str, SchedulerWatch] = {}
"""Schedulers of this process that are watched, by their addresses."""
_elsewhere: set[str] = set()
"""Schedulers of other processes that are watched."""


async def attach(server: Any) -> None:
    """Begin to watch a scheduler, or the scheduler of a client."""
    watched = current()
    if watched is None:
        return
    try:
        if hasattr(server, "stream_handlers") and hasattr(server, "transitions"):
            await watch_scheduler(server, watched)
        elif hasattr(server, "_graph_to_futures"):
            await watch_client(server, watched)
    except Exception as error:
        watched.sender.note_error("attach", error)


async def watch_scheduler(scheduler: Any, watched: Watched) -> None:
    """Watch a scheduler of this process and all that belongs to it."""
    if NAME in scheduler.plugins:
        return
    watch = SchedulerWatch(watched.place, watched.host)
    watch.attach(scheduler)
    scheduler.add_plugin(watch, name=NAME, idempotent=True)
    _here[scheduler.address] = watch
    for register, plugin in (
        (scheduler.register_worker_plugin, WorkerWatch),
        (scheduler.register_nanny_plugin, NannyWatch),
    ):
        packed = by_value(plugin(watched.place, watched.host))
        await register(comm=None, plugin=packed, name=NAME, idempotent=True)


async def watch_client(client: Any, watched: Watched) -> None:
    """Watch what a client hands in, and its scheduler if that is elsewhere."""
    address = client.scheduler.address
    own: Any = getattr(client.cluster, "scheduler", None)
    if address not in _here and hasattr(own, "transitions") and own.address == address:
        await watch_scheduler(own, watched)
    if address not in _here:
        topic = f"{NAME}-{os.path.basename(watched.place)}"
        client.subscribe_topic(topic, functools.partial(_forward, watched))
        await client.scheduler.register_scheduler_plugin(
            plugin=by_value(SchedulerWatch(watched.place, watched.host)),
            name=NAME,
            idempotent=True,
        )
        _elsewhere.add(address)
        for register, plugin in (
            (client.scheduler.register_worker_plugin, WorkerWatch),
            (client.scheduler.register_nanny_plugin, NannyWatch),
        ):
            packed = by_value(plugin(watched.place, watched.host))
            await register(plugin=packed, name=NAME, idempotent=True)
    _label_graphs(client, watched)


async def unwatch_client(client: Any) -> bool:
    """Cease to watch the scheduler of a client; tell whether that was in another process."""
    address = client.scheduler.address
    client.__dict__.pop("_graph_to_futures", None)
    if (watch := _here.pop(address, None)) is not None:
        watch.detach()
        watch.scheduler.remove_plugin(NAME)
        watch.scheduler.stream_handlers.pop(SPAN_OPERATION, None)
    elif address in _elsewhere:
        _elsewhere.discard(address)
        await client.scheduler.unregister_scheduler_plugin(name=NAME)
    else:
        return False
    await client.scheduler.unregister_worker_plugin(name=NAME)
    await client.scheduler.unregister_nanny_plugin(name=NAME)
    return watch is None


def by_value(plugin: Any) -> bytes:
    """Return a plugin as bytes that can be read where barrow is not installed."""
    import cloudpickle

    for module in TRAVELLING:
        cloudpickle.register_pickle_by_value(module)
    try:
        packed: bytes = cloudpickle.dumps(plugin)
    finally:
        for module in TRAVELLING:
            cloudpickle.unregister_pickle_by_value(module)
    return packed


def _forward(watched: Watched, event: tuple[float, Any]) -> None:
    """Hand on rows that a scheduler elsewhere has sent as an event."""
    for row in event[1]:
        watched.sender.put(*row)


def _label_graphs(client: Any, watched: Watched) -> None:
    """Tell the scheduler of each graph in which span it was handed in."""
    original = client._graph_to_futures
    sent = 0

    @functools.wraps(original)
    def graph_to_futures(*args: Any, **kwargs: Any) -> Any:
        nonlocal sent
        try:
            span, layers = current_span(), layers_since(sent)
            if span is not None or layers:
                sent += len(layers)
                client._send_to_scheduler({"op": SPAN_OPERATION, "span": span, "layers": layers})
        except Exception as error:
            watched.sender.note_error("a span", error)
        return original(*args, **kwargs)

    client._graph_to_futures = graph_to_futures
