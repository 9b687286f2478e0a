"""Show a run of barrow's own on the dashboard of the Dask cluster it uses."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from barrow.recording.rendering import tell_command

SHORTEST_SECONDS = 5.0
"""Runs that are predicted to be shorter are over before anybody has found the page."""


def offer_page(client: Any, folder: Path, seconds: float) -> None:
    """Give the scheduler's dashboard the page of the run in a folder, if it is worth it.

    Nothing is said if that is not possible: a run does not need it.
    """
    if seconds < SHORTEST_SECONDS:
        return
    from barrow.recording.attaching import by_value
    from barrow.recording.live_page import LivePage

    scheduler = client.scheduler
    with suppress(Exception):  # that of the run before, on this cluster
        client.sync(scheduler.unregister_scheduler_plugin, name=LivePage.name)
    with suppress(Exception):
        client.sync(
            scheduler.register_scheduler_plugin,
            plugin=by_value(LivePage(tell_command(folder))),
            name=LivePage.name,
            idempotent=False,
        )
