"""What all tests and doctests share: a cache folder of their own, and no memory of each other."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Keep runs of tests out of the user's cache folder, and what one learns from the others."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BARROW_CACHE", str(folder))
        patch.setenv("BARROW_HISTORY", "off")
        yield folder
