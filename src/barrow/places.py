"""Where barrow keeps what it keeps without being asked."""

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Return the user's cache folder for barrow; ``BARROW_CACHE`` moves it."""
    place = os.environ.get("BARROW_CACHE")
    return Path(place) if place else platformdirs.user_cache_path("barrow")
