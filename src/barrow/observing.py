"""Watch programs and open records: where recording meets those who read what it wrote.

Apart from :mod:`barrow.api`, so that a program which is only watched does not load the engine.
"""

from os import PathLike

from barrow.explaining import write_safely
from barrow.recording.reading import Record, open_record
from barrow.recording.watching import Watch


def watch(folder: str | PathLike[str]) -> Watch:
    """Record all that Dask does while a block of code runs.

    Any Dask code, on any cluster: those that are up, those that the code makes, or none at all.
    ``barrow watch script.py`` does the same to a program that knows nothing of barrow.

    Parameters
    ----------
    folder
        Where to keep the record: a new folder, or an empty one.

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
    return Watch(folder, write_safely)


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
