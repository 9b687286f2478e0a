import threading

import distributed
import pytest
from distributed import Client

from barrow.errors import ClusterError, InputError
from barrow.sites.attached import attach
from barrow.sites.local import start_local


@pytest.fixture(scope="module")
def cluster():
    with start_local(workers=1, threads=2, memory="1GiB") as cluster:
        yield cluster


def test_a_site_says_what_the_cluster_offers(cluster):
    site = cluster.site()
    assert (site.kind, site.workers, site.threads, site.limit_bytes) == ("dask", 1, 2, 2**30)
    assert site.is_local
    assert site.address == cluster.client.scheduler.address


def test_workers_are_seen_also_while_the_client_knows_of_none(cluster, monkeypatch):
    # Every few seconds a client refreshes what it knows, and then knows of no workers.
    monkeypatch.setattr(cluster.client, "scheduler_info", lambda **_: {"workers": {}})
    assert len(cluster.workers) == 1


def test_the_client_is_current_while_the_cluster_is_open(cluster):
    assert Client.current() is cluster.client
    with attach(cluster.client.scheduler.address) as inner:
        assert distributed.get_client() is inner.client
    assert Client.current() is cluster.client


def test_a_cluster_opened_inside_a_client_is_current_all_the_same(cluster):
    with Client(cluster.client.scheduler.address, security=cluster.client.security) as outer:
        inner = attach(cluster.client)
        assert Client.current() is cluster.client
        inner.close()
        assert Client.current() is outer


def test_waiting_in_vain_says_what_for_how_long_and_what_came(cluster):
    with pytest.raises(ClusterError, match=r"for 9 workers at tls://.*; 1 came") as caught:
        cluster.wait(9, timeout=0.2)
    assert "timeout=" in str(caught.value)


def test_waiting_for_what_is_there_returns_the_cluster(cluster):
    assert cluster.wait(1) is cluster


@pytest.mark.parametrize("n", [-1, 1.5, True, "2"])
def test_a_number_of_workers_is_a_whole_number(cluster, n):
    with pytest.raises(InputError, match="whole number"):
        cluster.scale(n)


def test_a_cluster_closed_by_another_thread_says_so_and_can_be_closed_again():
    cluster = start_local(workers=1)
    thread = threading.Thread(target=cluster.close)
    thread.start()
    thread.join(timeout=30)
    cluster.close()
    assert "closed" in repr(cluster)
    assert "closed" in cluster._repr_html_()
    for use in (cluster.site, cluster.wait, lambda: cluster.workers, cluster.__enter__):
        with pytest.raises(ClusterError, match="is closed"):
            use()


def test_a_cluster_shows_its_workers_and_escapes_what_it_shows(cluster, monkeypatch):
    assert "1 worker, 2 threads, 1.00 GiB" in repr(cluster)
    monkeypatch.setattr(cluster, "_address", "<b>")
    assert "<b>" not in cluster._repr_html_()
    assert "&lt;b&gt;" in cluster._repr_html_()


def test_the_dashboard_is_served_on_this_machine_only(cluster):
    pytest.importorskip("bokeh")
    from urllib.request import urlopen

    link = cluster.dashboard_link
    assert link.startswith("http://127.0.0.1:")
    with urlopen(link) as page:
        assert page.status == 200


def test_without_bokeh_there_is_no_dashboard(monkeypatch):
    monkeypatch.setattr("barrow.sites.hosted.find_spec", lambda _: None)
    with start_local(workers=1) as cluster:
        assert cluster.dashboard_link is None
        assert cluster.client.submit(sum, [1, 2]).result() == 3


def test_a_lost_scheduler_is_reported(cluster):
    other = attach(cluster.client.scheduler.address)
    other.client.close()
    with pytest.raises(ClusterError, match="does not answer"):
        other.wait(1)
    other.close()
