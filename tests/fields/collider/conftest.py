import pytest

pytest.importorskip("uproot")

from barrow.fields.collider.opening import close_all
from barrow.fields.collider.synthetic import write_nanoaod


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BARROW_CACHE", str(tmp_path / "cache"))
    yield
    close_all()


@pytest.fixture(scope="session")
def slim(tmp_path_factory):
    """A file of 5000 events in clusters of 1000."""
    path = tmp_path_factory.mktemp("slim") / "slim.root"
    return str(write_nanoaod(path, 5000, cluster=1000))
