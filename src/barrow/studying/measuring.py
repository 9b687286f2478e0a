"""Measure work with several numbers of workers."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from barrow.errors import InputError
from barrow.recording.watching import make_folder
from barrow.sites.asked import check_count
from barrow.sites.local import start_local
from barrow.sites.machine import read_machine
from barrow.studying.repeat import Repeat, Repeats
from barrow.studying.scaling import Scaling
from barrow.studying.workloads import as_workload
from barrow.units import format_count, format_seconds


def scaling(
    workload: Any,
    workers: Sequence[int] = (1, 2, 4),
    repeats: int = 3,
    *,
    threads: int = 1,
    memory: str | int | None = None,
    folder: str | PathLike[str] | None = None,
    quiet: bool = False,
) -> Scaling:
    """Measure how work scales with the number of workers on this machine.

    For each number a cluster is started, and the work is done some times over. More workers
    than cores are allowed: the answer says which ones share cores.

    Parameters
    ----------
    workload
        A function without arguments, in which Dask or barrow find the cluster as the current
        one; if it needs an argument it is given the ``distributed.Client``. Or a plan: its
        result is thrown away. Or the path of a script, which finds the cluster with
        ``Client()``; see ``barrow scaling --help``.
    workers
        The numbers to try.
    repeats
        How often each is measured.
    threads, memory
        Of each worker; memory such as ``"2GB"``, by default an equal share of what is free.
    folder
        Where to keep the record of every execution, for :func:`barrow.report` and
        :func:`barrow.what_if`; by default none is kept.
    quiet
        Say nothing on the way.

    Returns
    -------
    Scaling
        Print it for a table; ``choice`` and ``why`` say what to do; ``save("scaling.html")``
        writes a page with its figures, ``.png`` these alone, ``.json`` all numbers.

    Examples
    --------
    >>> import barrow, dask.array
    >>> def work():
    ...     return dask.array.ones((400, 400), chunks=200).sum().compute()
    >>> found = barrow.scaling(work, workers=[1], repeats=1, memory="500MB", quiet=True)
    >>> found.choice, found.settings[0].efficiency
    (1, 1.0)
    """
    numbers = check_numbers("workers", workers)
    check_count("repeats", repeats)
    work = as_workload(workload)
    found = []
    with keeping(folder) as place:
        for count in numbers:
            taken: list[Repeat] = []
            with start_local(count, threads, memory) as cluster, work.offer(cluster) as offered:
                for turn in range(1, repeats + 1):
                    where = place / f"{count}-workers-{turn}"
                    taken.append(work.measure(offered, count, where))
                    if not quiet:
                        _tell(work.name, count, turn, repeats, taken[-1].seconds)
            found.append((count, Repeats(tuple(taken))))
    return Scaling.of(work.name, read_machine().cores, found)


def check_numbers(name: str, given: Any) -> list[int]:
    """Return whole numbers without those that come twice, in order."""
    numbers = [given] if isinstance(given, int) else list(given)
    if not numbers:
        raise InputError(f"{name}= is empty: give at least one number.")
    for number in numbers:
        check_count(name, number)
    return sorted(set(numbers))


@contextmanager
def keeping(folder: str | PathLike[str] | None) -> Iterator[Path]:
    """Yield a new folder for records; one without a name is removed at the end."""
    if folder is not None:
        yield make_folder(folder)
        return
    with tempfile.TemporaryDirectory(prefix="barrow-study-", ignore_cleanup_errors=True) as place:
        yield Path(place)


def _tell(name: str, workers: int, turn: int, turns: int, seconds: float) -> None:
    number = format_count(workers, "worker")
    text = f"barrow: {name} on {number}, {turn} of {turns}: {format_seconds(seconds)}"
    print(text, file=sys.stderr, flush=True)
