"""The page of a run that goes on, on Dask's dashboard, in a real browser."""

import socket
import urllib.request

import numpy as np
import pytest
from distributed import Client, Event, LocalCluster

import barrow
from barrow.recording.live_page import LivePage, hide_page
from barrow.recording.offering import offer_page

# What happens when a reader comes back to the page: it is brought up to date at once.
COME_BACK = "document.dispatchEvent(new Event('visibilitychange'))"


@pytest.fixture(scope="module")
def connected():
    """A client of a cluster with a dashboard, as a user has it."""
    options = {"processes": False, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    cluster = LocalCluster(n_workers=1, threads_per_worker=2, **options)
    with cluster, Client(cluster) as connected:
        yield connected


@pytest.fixture
def client(connected, in_use):
    """The same, as the one that is in use."""
    with in_use(connected):
        yield connected


@pytest.fixture
def going(client, tmp_path):
    """A program that is watched and has begun; it ends when the event is set."""

    def work(number, name):
        if number % 2:
            Event(name).wait(60)
        return number

    name = f"go-{tmp_path.name}"
    with barrow.watch(tmp_path / "watched"):
        futures = client.map(work, range(20, 24), name=name, pure=False)
        event = Event(name, client=client)
        try:
            futures[0].result(30)
            yield futures, event
        finally:
            event.set()
            client.gather(futures)


def address_of(client, page="barrow"):
    return f"http://127.0.0.1:{client.cluster.scheduler.http_server.port}/{page}"


def read(address):
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read().decode()


def test_the_page_is_in_the_bar_of_the_dashboard_while_something_is_watched(client, going):
    assert 'href="barrow"' in read(address_of(client, "status"))
    assert "still running" in read(address_of(client))


def test_the_page_is_gone_from_the_bar_when_nothing_is_watched(client):
    assert 'href="barrow"' not in read(address_of(client, "status"))


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (400, False)])
def test_the_page_keeps_up_with_the_run(browser, client, going, width, dark):
    futures, event = going
    page = browser.open(address_of(client), width=width, dark=dark)
    try:
        assert page.overflow() == 0
        assert all(points > 1000 for points, _ in page.inked().values())
        page.evaluate(COME_BACK)
        page.wait_for("Number(document.documentElement.dataset.updates) >= 1")
        assert page.evaluate("document.querySelectorAll('main').length") == 1
        assert all(points > 1000 for points, _ in page.inked().values())
        event.set()
        client.gather(futures)
        done = "[...document.querySelectorAll('.tiles dd')].some((d) => d.textContent === '4')"
        page.evaluate(COME_BACK)
        page.wait_for(done)
        assert page.complaints() == []
        assert set(page.requests()) == {f"{page.address}?part"}
    finally:
        page.close()


def test_a_run_of_barrows_own_is_shown_on_the_dashboard_of_its_cluster(client, tmp_path):
    plan = barrow.plan(np.sqrt, np.ones((8, 9)), cluster=False)
    run = barrow.run(plan, folder=tmp_path / "run")
    offer_page(client, run.folder, seconds=1.0)
    assert 'href="barrow"' not in read(address_of(client, "status"))
    offer_page(client, run.folder, seconds=60.0)
    assert 'href="barrow"' in read(address_of(client, "status"))
    assert "&#39;sqrt&#39; took" in read(address_of(client))
    hide_page(client.cluster.scheduler)


def test_a_page_of_another_host_is_not_made(client, monkeypatch):
    plugin = LivePage(["false"])
    monkeypatch.setattr(plugin, "_host", f"not-{socket.gethostname()}")
    client.register_plugin(plugin)
    assert 'href="barrow"' not in read(address_of(client, "status"))
