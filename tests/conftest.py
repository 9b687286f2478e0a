"""What all tests share: a cache folder of their own, and one local cluster."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Keep runs of tests out of the user's cache folder."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BARROW_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def shared_cluster():
    """Two worker processes that serve all tests which only need some."""
    import barrow

    with barrow.cluster("local", workers=2, threads=1, memory="2GB") as cluster:
        yield cluster


@pytest.fixture
def local_cluster(shared_cluster):
    """The shared cluster, as the one that is in use."""
    with shared_cluster.client.as_current():
        yield shared_cluster
