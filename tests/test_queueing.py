from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.errors import InputError
from barrow.planning.layout import WORKER_BYTES
from barrow.queueing import choose_options, fit_to_jobs, is_queue, list_limits
from barrow.sites.partitions import Node, Partition

GB = 10**9
SMALL = Partition("8GB", (Node("a", 8, 8192 * 2**20),), is_default=True)
LARGE = Partition("16GBXL", (Node("b", 8, 16384 * 2**20),))


@pytest.fixture(scope="module")
def plan():
    return barrow.plan(np.sqrt, np.ones((6, 8)), cluster=False)


def predict(plan, peak_bytes):
    return replace(plan, peak_bound_bytes=peak_bytes)


@pytest.mark.parametrize(("peak", "name"), [(1, "8GB"), (7, "8GB"), (9, "16GBXL"), (15, "16GBXL")])
def test_the_smallest_partition_with_room_for_the_peak_is_chosen(plan, peak, name):
    options = choose_options(predict(plan, peak * GB), [LARGE, SMALL])
    assert options.partition == name
    assert options.memory >= peak * GB + WORKER_BYTES


def test_a_peak_that_fits_nowhere_is_refused_in_one_line(plan):
    with pytest.raises(InputError, match=r"largest, '16GBXL', has nodes of 16\.0 GiB") as caught:
        choose_options(predict(plan, 17 * GB), [SMALL, LARGE])
    assert "\n" not in str(caught.value)


def test_no_more_memory_is_asked_for_than_a_node_has(plan):
    assert (
        choose_options(predict(plan, 8 * GB), [SMALL, LARGE]).memory <= SMALL.nodes[0].memory_bytes
    )


def test_a_task_may_use_its_peak_and_never_all_of_its_job(plan):
    tight = fit_to_jobs(predict(plan, 8 * GB), 8 * GB + WORKER_BYTES, jobs=2)
    assert tight.budget_bytes == 8 * GB
    ample = fit_to_jobs(predict(plan, GB), 8 * GB, jobs=2)
    assert GB < ample.budget_bytes < 8 * GB - WORKER_BYTES


def test_shares_of_a_core_are_tried_before_whole_nodes():
    limits = list_limits([*SMALL.nodes, *LARGE.nodes])
    assert limits[:2] == [2**30, 2**31]
    assert limits == sorted(limits)


@pytest.mark.parametrize("cluster", [None, False, "local", np.ones(3)])
def test_only_the_word_slurm_means_a_queue(cluster):
    assert not is_queue(cluster)
    assert is_queue("slurm")
