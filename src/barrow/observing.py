"""Watch programs and open records: where recording meets those who read what it wrote.

Apart from :mod:`barrow.api`, so that a program which is only watched does not load the engine.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from barrow.diagnosing.live import Live
from barrow.explaining import write_safely
from barrow.model.finding import Finding
from barrow.recording import joining
from barrow.recording.reading import Record, open_record
from barrow.recording.sending import Sender
from barrow.recording.watching import Watch, Watched

ANSWER_SECONDS = 5.0
"""How long a scheduler may take to say who its workers are."""


def watch(folder: str | PathLike[str], *, act: bool = False) -> Watch:
    """Record all that Dask does while a block of code runs.

    Any Dask code, on any cluster: those that are up, those that the code makes, or none at all.
    ``barrow watch script.py`` does the same to a program that knows nothing of barrow.

    Parameters
    ----------
    folder
        Where to keep the record: a new folder, or an empty one.
    act
        Whether to free workers that are paused for ever, rather than only say so.

    Returns
    -------
    context manager
        Gives an object with ``metrics``, ``steps``, ``record`` and ``folder``.

    Examples
    --------
    >>> import barrow, dask.array, tempfile
    >>> with barrow.watch(tempfile.mkdtemp()) as run:
    ...     with barrow.span("add"):
    ...         total = dask.array.ones((40, 50), chunks=10).sum().compute()
    >>> run.metrics["status"], run.metrics["tasks_failed"], run.record.table("span").name[0]
    ('done', 0, 'add')
    """
    return _Attended(folder, act)


class _Attended(Watch):
    """A watch with a doctor: what cannot wait is said while the program runs."""

    def __init__(self, folder: str | PathLike[str], act: bool) -> None:
        super().__init__(folder, write_safely)
        self._act = act
        self._unsticking: dict[str, Any] = {}

    def __enter__(self) -> Watched:
        watched = super().__enter__()
        tell = partial(tell_at_once, note)
        self._live = Live(lambda: watched.record, tell, on_look=self._free)
        self._live.__enter__()
        return watched

    def __exit__(self, *how: Any) -> None:
        self._live.__exit__(*how)
        super().__exit__(*how)

    def _free(self) -> None:
        """Look after workers that are paused, if that is wanted."""
        if not self._act or "distributed" not in sys.modules:
            return
        from distributed.client import _global_clients

        from barrow.running.unsticking import Unsticking

        clients: list[Any] = list(_global_clients.values())
        for client in clients:
            if client.status != "running":
                continue
            if client.id not in self._unsticking:
                tell = partial(note, "stuck")
                self._unsticking[client.id] = Unsticking(client, tell)
            known = client.sync(client.scheduler.identity, callback_timeout=ANSWER_SECONDS)
            self._unsticking[client.id].see(known["workers"])


def attend(folder: Path, sender: Sender) -> Live:
    """Return a doctor for a program that another process runs, and this one records."""
    read = partial(Record, folder / "record.sqlite")
    return Live(read, partial(tell_at_once, partial(send_event, sender)))


def tell_at_once(note: Callable[[str, str, Mapping[str, Any]], None], finding: Finding) -> None:
    """Put a finding into the record; if it is trouble, say it on standard error as well."""
    kept = ("code", "severity", "evidence", "advice")
    note("finding", finding.claim, {name: getattr(finding, name) for name in kept})
    if finding.is_trouble:
        print(f"barrow: {finding.code}: {finding.claim} {finding.advice}", file=sys.stderr)


def note(kind: str, message: str, details: Mapping[str, Any]) -> None:
    """Put an event into the record of the program that is watched here."""
    if (here := joining.current()) is not None:
        send_event(here.sender, kind, message, details)


def send_event(sender: Sender, kind: str, message: str, details: Mapping[str, Any]) -> None:
    """Put an event into a record that is being written."""
    sender.put("event", time.time(), kind, message, json.dumps(details))


def record(folder: str | PathLike[str]) -> Record:
    """Open the record of a run, of a watched program, or beside a stored result.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> run = barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0)))
    >>> record = barrow.record(run.folder)
    >>> record.status, record.table("task").columns[0]
    ('done', 'chunk')
    """
    return open_record(folder)
