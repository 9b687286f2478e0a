"""What all tests and doctests share: a cache folder of their own, and no memory of each other."""

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent
ALONE = {"src", "cli", "illnesses", "recording", "reporting", "test_examples.py"}

# The same examples each time: what fails here fails everywhere. New ones are looked for with
# `pytest --hypothesis-profile=searching`.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("searching", max_examples=1000, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Keep runs of tests out of the user's cache folder, and what one learns from the others."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BARROW_CACHE", str(folder))
        patch.setenv("BARROW_HISTORY", "off")
        yield folder


@pytest.fixture(autouse=True)
def no_client_of_others(request):
    """Hide Dask clients of other tests from those that use, or watch, whatever client there is."""
    is_alone = bool(ALONE & set(request.path.relative_to(ROOT).parts))
    if "distributed" not in sys.modules or not is_alone:
        yield
        return
    import dask
    from distributed import client as clients

    others = dict(clients._global_clients)
    clients._global_clients.clear()
    token = clients._current_client.set(None)
    with dask.config.set(scheduler=None) if others else nullcontext():
        yield
    clients._current_client.reset(token)
    clients._global_clients.clear()
    clients._global_clients.update(others)
