"""Watch programs and open records: where recording meets those who read what it wrote.

Apart from :mod:`barrow.api`, so that a program which is only watched does not load the engine.
"""

import json
import sys
import time
from collections.abc import Mapping
from functools import partial
from os import PathLike
from typing import Any

from barrow.explaining import write_safely
from barrow.model.finding import Finding
from barrow.recording import joining
from barrow.recording.reading import Record, open_record
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
        from barrow.diagnosing.live import Live

        self._live = Live(lambda: watched.record, self._tell, on_look=self._free)
        self._live.__enter__()
        return watched

    def __exit__(self, *how: Any) -> None:
        self._live.__exit__(*how)
        super().__exit__(*how)

    def _tell(self, finding: Finding) -> None:
        note("finding", finding.claim, {"code": finding.code, "severity": finding.severity})
        if finding.is_trouble:
            print(f"barrow: {finding.code}: {finding.claim} {finding.advice}", file=sys.stderr)

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


def note(kind: str, message: str, details: Mapping[str, Any]) -> None:
    """Put an event into the record of the program that is watched here."""
    if (here := joining.current()) is not None:
        here.sender.put("event", time.time(), kind, message, json.dumps(details))


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
