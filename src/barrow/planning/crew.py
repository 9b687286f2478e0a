"""How many tasks run at once on the workers of a cluster, which may differ.

A worker runs as many as it has threads, or as have room in it together. Numbers in,
numbers out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from barrow.model.site import Offer

# So many ways to share are tried at most.
MOST_SHARES = 6


@dataclass(frozen=True)
class Share:
    """What one task may use, and how many run at once if it does."""

    budget_bytes: int
    workers: int
    """Workers that can take such a task."""
    threads: int
    """Tasks at once on one worker, at most."""
    at_once: int
    """Tasks at once on all workers."""


def list_shares(offers: Sequence[Offer]) -> list[Share]:
    """Return the ways to share workers among tasks: most at once first, most memory last.

    Examples
    --------
    >>> for share in list_shares([Offer(threads=4, limit_bytes=10**9)]):
    ...     print(share.at_once, share.budget_bytes)
    4 148178400
    3 197571200
    2 296356800
    1 690284800

    A large worker beside a small one: what does not fit the small one runs on the other.

    >>> pair = [Offer(threads=1, limit_bytes=10**9), Offer(threads=1, limit_bytes=4 * 10**9)]
    >>> [(share.workers, share.budget_bytes) for share in list_shares(pair)]
    [(2, 592713600), (2, 690284800), (1, 3390284800)]
    """
    usual = min(offer.room_bytes // max(1, offer.threads) for offer in offers)
    budgets = sorted({n for offer in offers for n in _budgets(offer) if n > usual})
    shares = [share_out(offers, usual)]
    for budget in budgets:
        share = share_out(offers, budget)
        last = shares[-1]
        if (share.workers, share.at_once) == (last.workers, last.at_once) and len(shares) > 1:
            # As many at once, with more memory for each. Only the first is kept beside it: it
            # leaves a reserve for what was predicted wrongly.
            shares.pop()
        shares.append(share)
    return _thin_out(shares)


def share_out(offers: Sequence[Offer], budget_bytes: int) -> Share:
    """Return how many tasks of so many bytes run at once."""
    counts = [count for offer in offers if (count := count_tasks(offer, budget_bytes))]
    return Share(
        max(1, budget_bytes), max(1, len(counts)), max(counts, default=1), sum(counts) or 1
    )


def count_tasks(offer: Offer, budget_bytes: int) -> int:
    """Return how many tasks of so many bytes a worker runs at once.

    Examples
    --------
    >>> [count_tasks(Offer(threads=4, limit_bytes=10**9), n * 10**8) for n in (1, 2, 6, 8)]
    [4, 2, 1, 0]
    """
    fitting = offer.room_bytes // max(1, budget_bytes)
    return min(max(1, offer.threads), fitting or int(budget_bytes <= offer.whole_bytes))


def limit_offers(offers: Sequence[Offer], limit_bytes: int) -> list[Offer]:
    """Return the offers of workers that may hold no more than so much."""
    return [replace(offer, limit_bytes=min(offer.limit_bytes, limit_bytes)) for offer in offers]


def _budgets(offer: Offer) -> Iterator[int]:
    """Yield what a task may use if fewer than all threads of a worker have one."""
    count = max(1, offer.threads)
    while count > 1:
        yield offer.room_bytes // count
        count = count - 1 if count <= 4 else count // 2
    yield from (offer.room_bytes, offer.whole_bytes)


def _thin_out(shares: list[Share]) -> list[Share]:
    """Return some of the shares, evenly chosen, the first and the last among them."""
    last = len(shares) - 1
    if last < MOST_SHARES:
        return shares
    return [shares[round(n * last / (MOST_SHARES - 1))] for n in range(MOST_SHARES)]
