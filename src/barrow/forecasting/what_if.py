"""Answer what would be if a run had other workers, more memory, other chunks or another disk."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil
from os import PathLike
from typing import Any

from barrow.errors import BudgetError, InputError
from barrow.forecasting.asked import Asked, explain_misfit
from barrow.forecasting.bounds import Bounds, find_bounds
from barrow.forecasting.fetching import move_inputs
from barrow.forecasting.forecast import Forecast, Point, draw_forecast
from barrow.forecasting.measured import Measured, read_measured
from barrow.forecasting.planned import foresee_plan
from barrow.model.plan import Plan
from barrow.model.run import Run
from barrow.recording.reading import open_record
from barrow.reporting.content import Outlook
from barrow.reporting.tables import Tables
from barrow.simulating.load import Load
from barrow.simulating.simulate import UNITS_PER_SLOT, put_together, simulate

MOST_WORKERS = 10_000
"""Of those that are tried when nobody says how many."""
BEYOND = 4
"""Times as many as have something to do: so far a curve goes on to show that it is flat."""
MOST_POINTS = 12
MOST_IN_REPORT = 2000
"""Tasks of a curve in a report; more of them are put together."""


def what_if(
    run: Run | Plan | str | PathLike[str],
    workers: int | Iterable[int] | None = None,
    *,
    memory: str | int | None = None,
    chunk: Mapping[str, int] | None = None,
    disk_gbps: float | None = None,
    cores: int | None = None,
    threads: int | None = None,
    queue_seconds: float | None = None,
    losses_per_hour: float | None = None,
    times: float = 1.0,
    seed: int = 0,
) -> Forecast:
    """Foresee what a run would take with other workers, memory, chunks, or another disk.

    Its measured tasks are played through in a simulation, with what lay between them: the
    scheduler, which every task has to pass; cores and disk that workers share; the time that
    workers take to come; losses; what the client does alone. What is not given stays as it was.

    Parameters
    ----------
    run
        A run, its folder or its stored result, also of a program that was watched; or a plan
        that has not run yet, for which its probes have to do.
    workers
        How many, or several numbers for a curve; by default as many as make sense.
    memory
        Of each worker, such as ``"4GB"``: as many tasks run in it at once as have room.
    chunk
        Other lengths of chunks, such as ``{"y": 512}``; for runs of barrow's own.
    disk_gbps
        Gigabytes per second that all workers get together from the disk; by default as much
        as they ask for.
    cores
        Of all workers together: if there are more workers, they share them. By default every
        thread of a worker has a core of its own.
    threads
        Of each worker.
    queue_seconds
        How long workers take to come; by default as long as they did.
    losses_per_hour
        Workers that are lost, for each hour of a worker; by default as many as were.
    times
        How many times as much data there are.
    seed
        For what is drawn by chance: the same seed gives the same answer.

    Returns
    -------
    Forecast
        Print it for a table; ``points`` has the numbers, ``choice`` and ``why`` what to do, and
        ``last_workers`` and ``stopper`` where it stops to scale, and why;
        ``save("what-if.html")`` writes a page with its figure.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> run = barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0)))
    >>> forecast = barrow.what_if(run, workers=(1, 10), times=1000)
    >>> [point.workers for point in forecast.points], forecast.tasks
    ([1, 10], 1000)
    """
    asked = Asked.of(
        memory,
        chunk=chunk,
        disk_gbps=disk_gbps,
        cores=cores,
        threads=threads,
        queue_seconds=queue_seconds,
        losses_per_hour=losses_per_hour,
        times=times,
    )
    return forecast(read(run), asked, workers, seed=seed)


def read(given: Any) -> Measured:
    """Return what is known of a run, by itself or by its place, or of a plan."""
    if isinstance(given, Plan):
        return foresee_plan(given)
    place = given.folder if isinstance(given, Run) else getattr(given, "folder", given)
    if not isinstance(place, (str, PathLike)):
        raise InputError(f"{given!r} is neither a run nor a plan, and no folder of one.")
    return read_measured(open_record(place))


def forecast(
    measured: Measured,
    asked: Asked,
    workers: int | Iterable[int] | None = None,
    *,
    seed: int = 0,
    repeats: int | None = None,
) -> Forecast:
    """Return what is foreseen; ``repeats`` is how often each number is played through."""
    load = asked.load(measured)
    at_once = asked.at_once(load, asked.stage(measured, 1).threads)
    if not at_once:
        raise BudgetError(explain_misfit(asked, load))
    bounds = find_bounds(load, asked.stage(measured, 1))
    last = max(1, ceil(bounds.last_slots() / at_once))
    numbers = _list_workers(workers, last, measured.workers)
    points = [
        _foresee(measured, asked, load, bounds, number, at_once, seed, repeats)
        for number in numbers
    ]
    held = [number for _, number in measured.held]
    return Forecast(
        name=measured.name,
        tasks=load.count,
        points=tuple(points),
        measured_workers=measured.workers,
        measured_seconds=measured.seconds,
        is_run=len(measured.load.steps) > 0,
        last_workers=last,
        stopper=bounds.stopper(),
        held_workers=measured.mean_held,
        most_held=max(held, default=measured.workers),
    )


def _foresee(
    measured: Measured,
    asked: Asked,
    load: Load,
    bounds: Bounds,
    workers: int,
    at_once: int,
    seed: int,
    repeats: int | None,
) -> Point:

    stage = replace(asked.stage(measured, workers), threads=at_once)
    load = move_inputs(load, measured.inputs, measured.workers, workers)
    taken = simulate(load, stage, seed=seed, repeats=repeats)
    busy = min(workers, load.count)
    worker_bytes = int(load.worker_bytes + at_once * load.task_bytes)
    return Point(
        workers=workers,
        threads=at_once,
        seconds=taken.seconds,
        low_seconds=taken.low_seconds,
        high_seconds=taken.high_seconds,
        core_hours=workers * asked.stage(measured, 1).threads * taken.seconds / 3600,
        worker_bytes=worker_bytes,
        total_bytes=int(
            busy * worker_bytes + (workers - busy) * load.worker_bytes + load.client_bytes
        ),
        scarce=bounds.scarcest(stage.slots),
        is_oversubscribed=stage.slots > stage.cores,
    )


def _list_workers(given: int | Iterable[int] | None, last: int, measured: int) -> list[int]:
    """Return the numbers of workers to try."""
    if given is not None:
        numbers = [given] if isinstance(given, int) else list(given)
        if not numbers or not all(isinstance(n, int) and n > 0 for n in numbers):
            raise InputError(f"workers={given!r} cannot be used: give whole numbers from 1 up.")
        return sorted(set(numbers))
    most = max(measured, min(MOST_WORKERS, BEYOND * last))
    doubled = [2**power for power in range(most.bit_length()) if 2**power <= most]
    step = ceil(len(doubled) / MOST_POINTS)
    return sorted({*doubled[::step], measured})


def foresee_curve(record: Tables) -> Outlook | None:
    """Return what more workers would bring to the run of a record; None if nobody can say."""
    try:
        measured = read_measured(record)
    except InputError:
        return None
    load = measured.load
    if len(load.after) and load.count > MOST_IN_REPORT:
        return None  # it would take longer than all else that is in a report
    rough = put_together(load, max(MOST_IN_REPORT, UNITS_PER_SLOT * measured.stage.slots))
    found = forecast(replace(measured, load=rough), Asked(), repeats=1)
    return Outlook(found.outlook(), draw_forecast(found))
