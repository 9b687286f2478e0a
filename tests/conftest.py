"""What all tests share: one local cluster. Their cache folder is set above, for doctests too."""

import logging
from contextlib import contextmanager

import pytest


@pytest.fixture(scope="session")
def shared_cluster():
    """Two worker processes that serve all tests which only need some."""
    import barrow

    with barrow.cluster("local", workers=2, threads=1, memory="2GB") as cluster:
        yield cluster


@pytest.fixture
def local_cluster(shared_cluster, in_use):
    """The shared cluster, as the one that is in use."""
    with in_use(shared_cluster.client):
        yield shared_cluster


@pytest.fixture
def in_use():
    """Return a context in which a client is the one that Dask uses, and that is watched."""
    from distributed.client import _set_global_client

    @contextmanager
    def used(client):
        _set_global_client(client)
        with client.as_current():
            yield

    return used


@pytest.fixture(scope="session")
def start_dask():
    """Return a function that starts a Dask cluster as somebody else would, on loopback only."""
    from distributed import LocalCluster

    def start(**options):
        return LocalCluster(
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
            **options,
        )

    return start
