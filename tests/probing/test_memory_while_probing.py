"""A function is tried out with no more memory than its run may use."""

import resource

import numpy as np
import pytest

import barrow
from barrow.errors import BudgetError

DATA = np.ones((64, 128, 128))
MIB = 2**20


@pytest.mark.parametrize("kind", ["map", "reduce"])
def test_a_function_that_always_needs_more_than_is_allowed_is_refused_at_once(kind):
    def greedy(x):
        return x.sum() + np.empty(2**34, "u1")[0] if kind == "reduce" else x + np.empty(2**34)[0]

    before = resource.getrlimit(resource.RLIMIT_DATA)
    run = barrow.reduce if kind == "reduce" else barrow.map
    with pytest.raises(BudgetError, match=r"'greedy' needs more than .*Unable to allocate"):
        run(greedy, DATA, memory="500MB", quiet=True)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_sizes_that_do_not_fit_are_not_measured():
    sizes = []

    def swells(x):
        sizes.append(len(x))
        kept = np.empty(x.nbytes * 200, "u1")  # a frame needs 25 MiB
        return x + 0 * kept[0].astype(x.dtype)

    plan = barrow.plan(swells, DATA, memory="1GB", whole=(1, 2), cluster=False, quiet=True)
    assert plan.n_chunks >= 1
    assert max(sizes) * 25 * MIB < 2 * 10**9
