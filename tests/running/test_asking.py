"""What tasks ask for fits what workers offer."""

from hypothesis import given
from hypothesis import strategies as st

from barrow.model.site import MEMORY
from barrow.running.asking import Asking, Offered, choose_share
from barrow.running.backlog import Batch

MIB = 2**20
BATCH = Batch([range(1)])


def settled(*units, threads=2, budget=100 * MIB, per_worker=2.0):
    asking = Asking(budget, per_worker)
    asking.settle([Offered(threads, {MEMORY: n} if n else {}) for n in units])
    return asking


def test_a_task_asks_for_what_it_may_use():
    assert settled(1000, 800).of(BATCH) == {MEMORY: 100}


def test_a_task_that_runs_alone_asks_for_the_largest_worker():
    assert settled(1000, 800).of(Batch([range(1)], is_alone=True)) == {MEMORY: 1000}


def test_nobody_asks_where_some_workers_offer_nothing():
    assert settled(1000, 0).of(BATCH) == {}


def test_a_task_never_asks_for_more_than_there_is():
    asking = settled(50, 80)
    assert asking.of(BATCH) == {MEMORY: 80}
    assert asking.is_met(asking.of(BATCH))


def test_what_nobody_offers_any_more_is_noticed_and_less_asked_for():
    asking = settled(1000, 80)
    asked = asking.of(Batch([range(1)], is_alone=True))
    small = [Offered(2, {MEMORY: 80})]
    asking.meet(small)
    assert not asking.is_met(asked)
    asking.settle(small)
    assert asking.is_met(asking.of(Batch([range(1)], is_alone=True)))


WORKERS = st.lists(st.tuples(st.integers(1, 16), st.integers(1, 2000)), min_size=1, max_size=6)


@given(st.integers(1, 3000), WORKERS, st.floats(1, 16))
def test_some_worker_can_always_take_it(units, workers, per_worker):
    asked = choose_share(units, workers, per_worker)
    assert any(asked <= offered for _, offered in workers)


@given(st.integers(1, 200), st.integers(1, 16), st.integers(200, 4000), st.integers(1, 16))
def test_no_more_run_at_once_than_planned(units, threads, offered, planned):
    asked = choose_share(units, [(threads, offered)] * 3, planned)
    assert min(threads, offered // asked) <= planned
    assert asked >= min(units, offered)
