"""Where barrow keeps what it keeps without being asked."""

import os
import platform
import re
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Return the user's cache folder for barrow; ``BARROW_CACHE`` moves it."""
    place = os.environ.get("BARROW_CACHE")
    return Path(place) if place else platformdirs.user_cache_path("barrow")


def history_file() -> Path | None:
    """Return where costs are remembered; None if ``BARROW_HISTORY`` is ``off``.

    Each machine has a file of its own: what was measured holds for no other, and a home
    folder on the network may be shared by many.
    """
    if os.environ.get("BARROW_HISTORY", "").strip().lower() == "off":
        return None
    host = re.sub(r"[^A-Za-z0-9.-]", "_", platform.node()) or "machine"
    return cache_folder() / "history" / f"{host}.sqlite"
