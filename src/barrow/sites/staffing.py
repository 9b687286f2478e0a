"""How many workers the rest of a run can use.

Numbers in, numbers out: no Dask, no clock.
"""

from dataclasses import dataclass
from math import ceil

from barrow.errors import InputError
from barrow.sites.asked import check_count


@dataclass(frozen=True)
class Bounds:
    """Between which numbers of workers a cluster may choose."""

    minimum: int
    maximum: int

    def clip(self, number: int) -> int:
        """Return the number that is allowed and next to this one."""
        return min(self.maximum, max(self.minimum, number))


@dataclass(frozen=True)
class Rest:
    """What is left of a run."""

    tasks: int
    """Those that wait and those in hand."""
    task_seconds: float
    """How long one takes."""
    per_worker: float = 1.0
    """How many run at once on one worker."""
    most_workers: int | None = None
    """So many the run was planned for."""


def make_bounds(minimum: int, maximum: int | None, *, most: int) -> Bounds:
    """Return bounds, after a look whether they can be meant.

    Parameters
    ----------
    most
        How many workers there can be; the maximum, if none is given.

    Examples
    --------
    >>> make_bounds(1, None, most=8)
    Bounds(minimum=1, maximum=8)
    """
    check_count("minimum", minimum)
    if maximum is None:
        return Bounds(minimum, max(minimum, most))
    if check_count("maximum", maximum) < minimum:
        raise InputError(f"maximum={maximum} is less than minimum={minimum}.")
    return Bounds(minimum, maximum)


def count_useful(rest: Rest, *, asked: int, there: int, start_seconds: float) -> int:
    """Return how many workers there should be for what is left of a run.

    One more is asked for only if it would then work for at least as long as it takes to
    start. One that was asked for is kept for as long as there is a task for it: a job
    that has waited long may start at any moment.

    Parameters
    ----------
    asked, there
        Workers that were asked for, and those of them that have come.
    start_seconds
        Until a worker that is asked for now has come.

    Examples
    --------
    With 80 s of work and one worker, a worker that starts in 2 s is worth it, also the
    twentieth; of those that take 20 s only three are.

    >>> rest = Rest(tasks=80, task_seconds=1.0, most_workers=20)
    >>> count_useful(rest, asked=1, there=1, start_seconds=2.0)
    20
    >>> count_useful(rest, asked=1, there=1, start_seconds=20.0)
    3

    At the end there are fewer tasks than workers.

    >>> count_useful(Rest(tasks=3, task_seconds=1.0), asked=8, there=8, start_seconds=2.0)
    3
    """
    usable = ceil(rest.tasks / rest.per_worker)
    if rest.most_workers is not None:
        usable = min(usable, rest.most_workers)
    # Of what is left when they have come, so much is one worker's share at least.
    share_seconds = max(rest.task_seconds, start_seconds) * rest.per_worker
    done_seconds = start_seconds * there * rest.per_worker
    left_seconds = rest.tasks * rest.task_seconds - done_seconds
    worth = int(left_seconds / share_seconds) if share_seconds > 0 else usable
    return min(usable, max(asked, worth))
