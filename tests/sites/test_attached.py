import json
import subprocess
import sys
import warnings

import dask
import pytest
from distributed import Client, LocalCluster

from barrow.errors import ClusterError, InputError
from barrow.sites import attached
from barrow.sites.attached import attach, find_client
from barrow.sites.local import start_local


@pytest.fixture(scope="module")
def dask_cluster():
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def local():
    with start_local(workers=1) as cluster:
        yield cluster


def is_alive(client):
    return client.submit(sum, [1, 2]).result(timeout=30) == 3


def test_an_address_is_attached_to_and_left_alone(local):
    with attach(local.client.scheduler.address) as cluster:
        assert cluster.client is not local.client
        assert Client.current() is cluster.client
        assert is_alive(cluster.client)
        assert cluster.site().is_local
        with pytest.raises(InputError, match="can't be changed from here"):
            cluster.scale(2)
    assert cluster.client.status == "closed"
    assert is_alive(local.client)


def test_a_client_is_attached_to_and_left_alone(local):
    with attach(local.client) as cluster:
        assert cluster.client is local.client
        assert len(cluster.workers) == 1
    assert is_alive(local.client)


def test_a_dask_cluster_is_attached_to_and_left_alone(dask_cluster):
    with attach(dask_cluster) as cluster:
        assert is_alive(cluster.client)
        site = cluster.site()
        assert site.workers == 1
        assert site.is_local
        assert site.limit_bytes > 0
    assert cluster.client.status == "closed"
    with Client(dask_cluster) as client:
        assert is_alive(client)


def test_a_scheduler_file_is_attached_to(local, tmp_path):
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"address": local.client.scheduler.address}))
    with attach(path) as cluster:
        assert is_alive(cluster.client)


def test_an_address_where_nobody_answers_is_named():
    with pytest.raises(ClusterError, match=r"no scheduler at tcp://127\.0\.0\.1:1 ") as caught:
        attach("127.0.0.1:1", timeout=0.3)
    assert "See whether it runs" in str(caught.value)


@pytest.mark.parametrize("address", ["nonsense://a:1", "tls://127.0.0.1:1"])
def test_an_address_that_cannot_be_used_is_named_and_leaves_nothing_behind(address, local):
    with pytest.raises(ClusterError, match=address):
        attach(address, timeout=0.3)
    assert Client.current() is local.client


@pytest.mark.parametrize("where", [7, "no/such/file", object()])
def test_what_is_no_cluster_is_refused(where):
    with pytest.raises(InputError, match=r"is no cluster|no scheduler file"):
        attach(where)


def test_a_closed_client_is_refused(local):
    client = Client(local.client.scheduler.address, security=local.client.security)
    client.close()
    with pytest.raises(InputError, match="closed"):
        attach(client)


def test_an_open_address_is_warned_of_once():
    attached._warn_if_open.cache_clear()
    with pytest.warns(UserWarning, match=r"tcp://10\.1\.2\.3:8786 has no encryption"):
        attached._warn_if_open("tcp://10.1.2.3:8786")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attached._warn_if_open("tcp://10.1.2.3:8786")
        attached._warn_if_open("tcp://127.0.0.1:8786")


def test_the_current_client_is_found_and_a_closed_one_is_not(local):
    assert find_client() is local.client
    with Client(local.client.scheduler.address, security=local.client.security) as client:
        assert find_client() is client
    assert find_client() is local.client


def test_an_address_in_the_configuration_is_connected_to(local, monkeypatch):
    monkeypatch.setattr(attached, "find_live_client", lambda: None)
    with dask.config.set({"scheduler-address": local.client.scheduler.address}):
        client = find_client()
    assert client is not local.client
    assert is_alive(client)
    client.close()


def test_a_scheduler_file_in_the_environment_is_found(local, monkeypatch, tmp_path):
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"address": local.client.scheduler.address}))
    monkeypatch.setattr(attached, "find_live_client", lambda: None)
    monkeypatch.setenv("DASK_SCHEDULER_FILE", str(path))
    client = find_client()
    assert client.scheduler.address == local.client.scheduler.address
    client.close()


@pytest.mark.parametrize("text", ["", "{}", "[]"])
def test_a_broken_scheduler_file_is_named(tmp_path, text):
    path = tmp_path / "scheduler.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is no scheduler file"):
        attach(path)


def test_looking_for_a_client_does_not_import_distributed(python_environment):
    code = (
        "import sys\n"
        "from barrow.sites.attached import find_client\n"
        "print(find_client(), 'distributed' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=python_environment, capture_output=True, text=True
    )
    assert done.stdout == "None False\n", done.stderr
