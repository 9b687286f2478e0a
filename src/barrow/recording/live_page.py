"""The page ``/barrow`` of Dask's dashboard: the report of what runs, while it runs.

The page is made by a process of its own, and only when somebody looks: neither the program nor
its scheduler spends time on it. This module is sent by value to schedulers that run elsewhere.
"""

import asyncio
import json
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin
from tornado.ioloop import PeriodicCallback
from tornado.web import RequestHandler

from barrow.recording.sending import PAGE_FILE

PAGE = "barrow"
"""Last part of the address, and its name in the navigation bar."""
FRESH_SECONDS = 2.0
"""How long a page is shown to others who ask for it."""
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 1.0
"""Between two looks whether there is a dashboard now."""
_NOTHING = (
    "<!doctype html><html lang='en' data-ready='true'><meta charset='utf-8'><title>barrow</title>"
    "<body><main><p>{}</p></main></body></html>"
)


def read_command(place: str) -> list[str] | None:
    """Return how the page is made; None where that is not known, on another host for example."""
    try:
        with open(os.path.join(place, PAGE_FILE)) as file:
            return list(json.load(file))
    except (OSError, ValueError):
        return None


class Shown:
    """What the page of one scheduler shows now."""

    def __init__(self) -> None:
        self.command: list[str] | None = None
        """Prints the page; None when there is nothing to show."""
        self._lock = asyncio.Lock()
        self._made: dict[str, tuple[float, str]] = {}

    async def render(self, part: str) -> str:
        """Return the page, or the part of it that changes; one is made at a time."""
        if self.command is None:
            return _NOTHING.format("Nothing is recorded here at the moment.")
        async with self._lock:
            when, page = self._made.get(part, (0.0, ""))
            if time.monotonic() - when > FRESH_SECONDS:
                loop = asyncio.get_running_loop()
                page = await loop.run_in_executor(None, _make, [*self.command, part])
                self._made[part] = (time.monotonic(), page)
            return page

    def forget(self) -> None:
        """Show nothing any more."""
        self.command = None
        self._made.clear()


def show_page(scheduler: Any, command: Sequence[str]) -> Shown | None:
    """Give a scheduler's dashboard the page; None as long as it has no dashboard."""
    http = getattr(scheduler, "http_application", None)  # none before somebody asks for it
    applications = http.applications if http is not None else None
    if http is None or not applications:
        return None
    shown: Shown | None = scheduler.extensions.get(PAGE)
    if shown is None:
        shown = scheduler.extensions[PAGE] = Shown()
        prefix = getattr(applications[0], "prefix", "")
        routes = [(rf"{prefix.rstrip('/')}/{PAGE}", _Handler, {"shown": shown})]
        http.add_handlers(".*", routes)
    shown.command = list(command)
    pages = _find_pages(scheduler)
    if PAGE not in pages:
        pages.append(PAGE)
    return shown


def hide_page(scheduler: Any) -> None:
    """Take the page out of the navigation bar, and show nothing there."""
    shown: Shown | None = scheduler.extensions.get(PAGE)
    if shown is not None:
        shown.forget()
        with suppress(ValueError):
            _find_pages(scheduler).remove(PAGE)


class LivePage(SchedulerPlugin):  # type: ignore[misc]
    """Shows a run of barrow's own on the dashboard of the cluster it uses.

    Parameters
    ----------
    command
        Prints the page, on the host of the client.
    """

    name = "barrow-page"

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._host = socket.gethostname()
        self._looking: PeriodicCallback | None = None

    async def start(self, scheduler: Any) -> None:
        """Add the page, where the record can be read, as soon as there is a dashboard."""
        if socket.gethostname() != self._host or show_page(scheduler, self._command):
            return

        def look() -> None:
            is_over = scheduler.plugins.get(self.name) is not self
            if is_over or show_page(scheduler, self._command) is not None:
                self._stop()

        self._looking = PeriodicCallback(look, 1000 * LOOK_SECONDS)
        self._looking.start()

    async def close(self) -> None:
        """Cease to look for a dashboard."""
        self._stop()

    def _stop(self) -> None:
        if self._looking is not None:
            self._looking.stop()
            self._looking = None


class _Handler(RequestHandler):
    def initialize(self, shown: Shown) -> None:
        self._shown = shown

    async def get(self) -> None:
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.write(await self._shown.render("part" if self.get_query_arguments("part") else "page"))


def _find_pages(scheduler: Any) -> list[str]:
    from distributed.dashboard.scheduler import template_variables

    pages: list[str] = template_variables(scheduler)["pages"]
    return pages


def _make(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return _NOTHING.format(f"The page could not be made: {type(error).__name__}.")
    return done.stdout.decode()
