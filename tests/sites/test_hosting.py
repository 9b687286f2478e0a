"""Workers offer their memory while a run is there, and nothing stays behind."""

import threading
import time

import dask
import pytest
from distributed import Client

from barrow.model.site import MEMORY, THREADS
from barrow.sites.attached import attach
from barrow.sites.hosting import PREFIX

# The workers are threads of this process.
MAY_END = threading.Event()
# So what they see is the memory of all tests before: it must not stop them.
PATIENT = {f"distributed.worker.memory.{what}": False for what in ("target", "spill", "pause")}


@pytest.fixture
def dask_cluster(start_dask):
    with (
        dask.config.set(PATIENT),
        start_dask(
            n_workers=2,
            threads_per_worker=2,
            processes=False,
            memory_limit="1GB",
            resources={"GPU": 1},
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def cluster(dask_cluster):
    with Client(dask_cluster, set_as_default=False) as client, attach(client) as handle:
        yield handle


def offered(cluster):
    workers = cluster.client.sync(cluster.client.scheduler.identity)["workers"].values()
    return [worker["resources"] for worker in workers]


def plugins_left(dask_cluster):
    scheduler = dask_cluster.scheduler
    names = [*scheduler.plugins, *scheduler.worker_plugins]
    for worker in dask_cluster.workers.values():
        names += worker.plugins
    return [name for name in names if name.startswith(PREFIX)]


def await_that(is_so, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def test_workers_offer_what_tasks_may_use_beside_what_they_offered_before(cluster):
    with cluster.hosting("run"):
        assert offered(cluster) == [{"GPU": 1, THREADS: 2, MEMORY: 659}] * 2


def test_no_plugin_is_left_when_the_run_has_ended(cluster, dask_cluster):
    with cluster.hosting("run"):
        assert len(plugins_left(dask_cluster)) == 4
    assert not plugins_left(dask_cluster)


def test_workers_that_come_later_offer_their_memory_too(cluster, dask_cluster):
    with cluster.hosting("run"):
        dask_cluster.scale(3)
        await_that(lambda: [found.get(MEMORY) for found in offered(cluster)] == [659] * 3)


def test_the_end_of_one_run_leaves_another_what_it_needs(cluster, dask_cluster):
    with cluster.hosting("second"):
        with cluster.hosting("first"):
            pass
        dask_cluster.scale(3)
        await_that(lambda: [found.get(MEMORY) for found in offered(cluster)] == [659] * 3)


def test_a_client_that_is_gone_leaves_no_plugin_on_the_scheduler(dask_cluster):
    def left():
        scheduler = dask_cluster.scheduler
        names = [*scheduler.plugins, *scheduler.worker_plugins]
        return [name for name in names if name.startswith(PREFIX)]

    client = Client(dask_cluster, set_as_default=False)
    with attach(client) as handle, handle.hosting("run"):
        assert len(left()) == 2
        client.close()
        await_that(lambda: not left())


def wait_until_they_may_end(_):
    return MAY_END.wait(30)


def test_tasks_that_ask_for_nothing_run_beside_those_that_have_all_the_memory(cluster):
    client = cluster.client
    MAY_END.clear()
    with cluster.hosting("run"):
        ours = client.map(wait_until_they_may_end, range(4), pure=False, resources={MEMORY: 659})
        assert client.gather(client.map(lambda n: n + 1, range(10))) == list(range(1, 11))
        assert sum(1 for keys in client.processing().values() for _ in keys) == 4
        MAY_END.set()
        assert all(client.gather(ours))


def test_only_tasks_of_the_run_are_given_up_at_the_first_loss(cluster, dask_cluster):
    client, scheduler = cluster.client, dask_cluster.scheduler
    with cluster.hosting("run"):
        ours = client.submit(int, key=("run", 0))
        theirs = client.submit(int, key=("walk", 0))
        client.gather([ours, theirs])
        found = [scheduler.tasks[future.key].suspicious for future in (ours, theirs)]
        assert found == [scheduler.allowed_failures, 0]
