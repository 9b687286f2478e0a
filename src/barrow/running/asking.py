"""What the tasks of a run ask of a worker, so that they fit there together.

Numbers in, numbers out: what the workers offer comes in, what a batch asks for goes out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barrow.model.site import MEMORY, count_units
from barrow.running.backlog import Batch

Asked = Mapping[str, float]
"""An amount of each resource."""


class Offered(NamedTuple):
    """What one worker offers."""

    threads: int
    resources: Asked


@dataclass
class Asking:
    """Decides what each batch asks for.

    Parameters
    ----------
    budget_bytes
        What one task may use.
    per_worker
        Tasks at once on a worker, on the average, for which a run was planned.
    fixed
        What every task asks for beside memory.

    Examples
    --------
    >>> asking = Asking(budget_bytes=600 * 2**20, per_worker=1)
    >>> asking.settle([Offered(4, {"barrow-memory": 1000})])
    >>> asking.of(Batch([range(1)])), asking.of(Batch([range(1)], is_alone=True))
    ({'barrow-memory': 600}, {'barrow-memory': 1000})
    """

    budget_bytes: int
    per_worker: float
    fixed: Asked = field(default_factory=dict)
    _usual: int = field(default=0, init=False)
    _whole: int = field(default=0, init=False)
    _offers: tuple[Offered, ...] = field(default=(), init=False)

    def settle(self, offers: Iterable[Offered], *, needs_all: bool = True) -> None:
        """Decide what is asked for, from what the workers offer now.

        Parameters
        ----------
        needs_all
            Ask for nothing if some of them offer none: they would never be used.
        """
        self.meet(offers)
        able = [offer for offer in self._offers if _meets(offer, self.fixed)]
        pairs = [
            (self._count_slots(offer), int(offer.resources[MEMORY]))
            for offer in able
            if offer.resources.get(MEMORY)
        ]
        self._usual = self._whole = 0
        if pairs and (len(pairs) == len(able) or not needs_all):
            self._whole = max(units for _, units in pairs)
            self._usual = choose_share(count_units(self.budget_bytes), pairs, self.per_worker)

    def meet(self, offers: Iterable[Offered]) -> None:
        """Take note of workers that came or went; what is asked for stays."""
        self._offers = tuple(offers)

    def of(self, batch: Batch) -> dict[str, float]:
        """Return what a batch asks for; one that runs alone asks for a whole worker."""
        units = self._whole if batch.is_alone else self._usual
        return {**self.fixed, MEMORY: units} if units else dict(self.fixed)

    def describe_wanted(self) -> str:
        """Return in words who can do the tasks."""
        amounts = " and ".join(f"{amount:g} {name}" for name, amount in sorted(self.fixed.items()))
        return f"workers that offer {amounts}" if amounts else "workers"

    def _count_slots(self, offer: Offered) -> int:
        """Return how many tasks a worker can run at once, memory aside."""
        counts = (int(offer.resources[name] / amount) for name, amount in self.fixed.items())
        return min(offer.threads, *counts) if self.fixed else offer.threads

    def is_met(self, asked: Asked) -> bool:
        """Whether some worker offers all of that."""
        return not asked or any(_meets(offer, asked) for offer in self._offers)


def _meets(offer: Offered, asked: Asked) -> bool:
    return all(offer.resources.get(name, 0) >= amount for name, amount in asked.items())


def choose_share(units: int, offers: Iterable[tuple[int, int]], per_worker: float) -> int:
    """Return how much a task asks for, so that no more run at once than planned.

    Parameters
    ----------
    units
        What it may use.
    offers
        Threads of each worker, and what it offers.

    Examples
    --------
    Four threads, and room for four such tasks; but one at a time was planned.

    >>> choose_share(100, [(4, 400)], per_worker=4), choose_share(100, [(4, 400)], per_worker=1)
    (100, 201)

    Never more than the largest worker has.

    >>> choose_share(500, [(1, 400), (1, 300)], per_worker=1)
    400
    """
    workers = Counter(offers)
    most = per_worker * workers.total()
    largest = max(offered for _, offered in workers)
    # Just too much for one task more on some worker: only there the number changes.
    steps = {offered // n + 1 for threads, offered in workers for n in range(2, threads + 1)}
    for asked in sorted({units, *(step for step in steps if step > units)}):
        tasks = (n * min(threads, have // asked) for (threads, have), n in workers.items())
        if sum(tasks) <= most:
            return min(asked, largest)
    return min(units, largest)


def read_offers(workers: Mapping[str, Mapping[str, Any]]) -> dict[str, Offered]:
    """Return what each worker offers, from what the scheduler says."""
    return {
        address: Offered(worker["nthreads"], worker.get("resources", {}))
        for address, worker in workers.items()
    }
