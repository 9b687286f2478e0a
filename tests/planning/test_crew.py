"""As many tasks at once as have room together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barrow.model.site import Offer, count_units
from barrow.planning.crew import count_tasks, list_shares, share_out

OFFERS = st.builds(
    Offer,
    threads=st.integers(1, 64),
    limit_bytes=st.integers(10**8, 10**12),
    held_bytes=st.integers(0, 10**9),
)


@given(st.lists(OFFERS, min_size=1, max_size=5))
def test_fewer_tasks_at_once_have_more_memory_each(offers):
    shares = list_shares(offers)
    assert 1 <= len(shares) <= 6
    budgets = [share.budget_bytes for share in shares]
    counts = [share.at_once for share in shares]
    assert budgets == sorted(set(budgets))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == sum(offer.threads for offer in offers)
    assert budgets[-1] == max(offer.whole_bytes for offer in offers)


@given(OFFERS, st.integers(1, 10**12))
def test_tasks_that_run_at_once_fit_what_the_worker_offers(offer, budget):
    tasks = count_tasks(offer, budget)
    assert tasks <= offer.threads
    assert tasks * count_units(budget) <= offer.units or count_units(budget) == 1


@given(OFFERS)
def test_a_worker_stays_below_the_share_at_which_it_would_be_killed(offer):
    usual = Offer(offer.threads, max(offer.limit_bytes, 10**9), 150 * 2**20)
    assert usual.held_bytes + usual.whole_bytes <= 0.95 * usual.limit_bytes
    assert usual.held_bytes + usual.room_bytes <= 0.95 * usual.limit_bytes


def test_workers_that_are_too_small_for_a_task_are_not_counted():
    offers = [Offer(2, 10**9), Offer(2, 8 * 10**9)]
    share = share_out(offers, 2 * 10**9)
    assert (share.workers, share.threads, share.at_once) == (1, 2, 2)


@pytest.mark.parametrize("threads", [1, 2, 4, 64])
def test_the_first_share_is_one_task_for_each_thread(threads):
    first = list_shares([Offer(threads, 4 * 10**9)] * 3)[0]
    assert (first.workers, first.threads, first.at_once) == (3, threads, 3 * threads)
