import pytest
from distributed import Client

from barrow.errors import InputError
from barrow.sites import attached, opening
from barrow.sites.opening import open_cluster


def test_without_a_client_workers_are_started_and_with_one_it_is_used(monkeypatch):
    monkeypatch.setattr(opening, "find_live_client", lambda: None)
    with open_cluster(workers=1, threads=2, memory="1GB") as cluster:
        (worker,) = cluster.workers
        assert (worker.threads, worker.limit_bytes) == (2, 10**9)
        monkeypatch.setattr(opening, "find_live_client", attached.find_live_client)
        with open_cluster() as second:
            assert second.client is cluster.client
        assert cluster.client.status == "running"
        with open_cluster(cluster.client.scheduler.address) as third:
            assert Client.current() is third.client
        with pytest.raises(InputError, match=r"workers=2, memory='1GB' cannot be set"):
            open_cluster(cluster.client, workers=2, memory="1GB")


def test_an_unknown_place_is_refused_with_the_choices():
    with pytest.raises(InputError, match=r"'clould' is no place to run\. Choose 'local'"):
        open_cluster("clould")


def test_an_unknown_choice_is_refused():
    with pytest.raises(TypeError, match="gpus"):
        open_cluster("local", gpus=2)
