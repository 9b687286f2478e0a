"""What a run leaves on a cluster while it is there, and takes away when it ends.

A plugin on every worker, which offers the worker's memory and threads as resources; and one on the
scheduler, which has a lost worker reported at once. Both know the tasks of one run only.
Importing this module does not import Dask.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from barrow.model.site import Site

PREFIX = "barrow-run-"
# A worker that does not answer, stopped or stuck, must not hold up the others.
ANSWER_SECONDS = 5.0


@contextmanager
def hosting(
    client: Any, key: str, site: Site, lent: Mapping[str, Mapping[str, float]]
) -> Iterator[None]:
    """Let workers offer their memory, and report lost ones at once, while a run is there.

    A cluster that does not take plugins is used as it is.

    Parameters
    ----------
    key
        With which the keys of the run's tasks begin.
    site
        What the workers offer now.
    lent
        What some workers offer from now on, by their name.
    """
    name = PREFIX + key
    units = {address: offer.units for address, offer in site.crew.items()}
    smallest = min((offer.limit_bytes for offer in site.offers), default=0)
    worker_plugin = _make_worker_plugin(units, smallest, lent)
    _ask(client, "register_worker_plugin", plugin=_pack(worker_plugin), name=name, idempotent=False)
    scheduler_plugin = _make_scheduler_plugin(name, key, client.id)
    _ask(
        client,
        "register_scheduler_plugin",
        plugin=_pack(scheduler_plugin),
        name=name,
        idempotent=False,
    )
    try:
        yield
    finally:
        _ask(client, "unregister_scheduler_plugin", name=name)
        _ask(client, "unregister_worker_plugin", name=name)


def _ask(client: Any, request: str, **arguments: Any) -> None:
    """Send a request to the scheduler; do without if it is refused, or nobody is there."""
    with suppress(Exception):
        if client.status == "running":
            client.sync(
                getattr(client.scheduler, request), **arguments, callback_timeout=ANSWER_SECONDS
            )


def _pack(plugin: Any) -> bytes:
    # By value, so that a worker without barrow that joins meanwhile can open it: one that
    # fails to open a plugin does not start at all.
    import cloudpickle

    content: bytes = cloudpickle.dumps(plugin)
    return content


def _make_worker_plugin(
    units: Mapping[str, int], usual_limit: int, lent: Mapping[str, Mapping[str, float]]
) -> Any:
    """Return the plugin that lets a worker offer its memory and its threads.

    Parameters
    ----------
    units
        What each worker offers, by its address.
    usual_limit
        Limit of a worker that comes later and has none of its own.
    lent
        What some workers offer beside it, by their name.
    """
    from distributed.diagnostics.plugin import WorkerPlugin

    prefix = PREFIX

    # A class inside a function travels by value.
    class OfferMemory(WorkerPlugin):
        async def setup(self, worker: Any) -> None:
            try:
                from barrow.model.site import MEMORY, THREADS, Offer
            except ImportError:
                return  # it cannot do our tasks, so it gets none
            others = [
                plugin
                for name, plugin in worker.plugins.items()
                if name.startswith(prefix) and plugin is not self
            ]
            offered: dict[str, float] = dict(lent.get(str(worker.name), {}))
            if THREADS not in worker.state.total_resources:
                offered.setdefault(THREADS, worker.state.nthreads)
            # Several runs share what is there.
            if not others or MEMORY not in worker.state.total_resources:
                limit = worker.memory_manager.memory_limit or usual_limit
                usual = Offer(worker.state.nthreads, limit).units
                offered[MEMORY] = units.get(worker.contact_address, usual)
            if offered:
                # It stays when the run has ended: nobody asks for it then.
                await worker.set_resources(**offered)

    return OfferMemory()


def _make_scheduler_plugin(own_name: str, own_key: str, own_client: str) -> Any:
    """Return the plugin that has the loss of a worker reported at once.

    A worker that is lost with a task of ours is lost because of it, as far as others are
    concerned: their tasks do not come nearer to the number of losses that Dask allows.
    """
    from distributed.diagnostics.plugin import SchedulerPlugin

    def is_ours(key: Any) -> bool:
        return type(key) is tuple and key[0] == own_key

    class ReportLosses(SchedulerPlugin):
        name = own_name

        async def start(self, scheduler: Any) -> None:
            self.scheduler = scheduler

        def update_graph(self, scheduler: Any, *, keys: Any, **_: Any) -> None:
            for key in filter(is_ours, keys):
                if key in scheduler.tasks:
                    # As if it had failed as often as Dask allows: the next time is the last.
                    scheduler.tasks[key].suspicious = scheduler.allowed_failures

        def log_event(self, topic: str, msg: Any) -> None:
            if topic != "all" or not isinstance(msg, dict) or msg.get("expected"):
                return
            if msg.get("action") != "remove-worker":
                return
            keys = msg.get("processing-tasks", ())
            if any(map(is_ours, keys)):
                for key in keys:
                    task = self.scheduler.tasks.get(key)
                    if task is not None and not is_ours(key) and task.suspicious:
                        task.suspicious -= 1

        def remove_client(self, scheduler: Any, client: str) -> None:
            if client == own_client:
                # A client that was killed cannot take its plugins away.
                scheduler.worker_plugins.pop(own_name, None)
                scheduler.plugins.pop(own_name, None)

    return ReportLosses()
