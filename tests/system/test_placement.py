"""Steps that ask for a resource get it to themselves, wherever they run."""

import os
import time
from dataclasses import replace

import numpy as np
import pytest
from distributed import Client

import barrow
from barrow.errors import InputError
from barrow.model.site import Site
from barrow.pipelines import plan_pipeline
from barrow.sites.machine import read_machine

DATA = np.arange(96.0).reshape(24, 2, 2)
GPU = {"GPU": 1}


class Alone:
    """Adds one; fails if another call anywhere on this machine has not ended."""

    __name__ = "alone"

    def __init__(self, folder):
        self.lock = os.fspath(folder / "lock")

    def __call__(self, x):
        os.close(os.open(self.lock, os.O_CREAT | os.O_EXCL))
        time.sleep(0.002)
        os.unlink(self.lock)
        return x + 1


def in_chunks(plan, **changes):
    """Return a plan with as many chunks as frames."""
    return replace(plan.with_chunks(dim_0=1), **changes)


def run_all(plan):
    result = barrow.run(plan).result
    assert np.array_equal(result, DATA + 1)


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_tasks_that_need_the_only_one_never_meet_on_this_machine(engine, tmp_path):
    plan = barrow.plan(Alone(tmp_path), DATA, resources=GPU, quiet=True)
    assert plan.slots == 1
    run_all(in_chunks(plan, engine=engine, budget_bytes=10**8))


def test_tasks_that_need_the_only_one_never_meet_on_our_own_cluster(local_cluster, tmp_path):
    plan = barrow.plan(Alone(tmp_path), DATA, resources=GPU, quiet=True)
    assert (plan.engine, plan.workers, plan.slots) == ("dask", 1, 1)
    run_all(in_chunks(plan))


def test_tasks_go_to_the_workers_of_others_that_offer_it(start_dask, tmp_path):
    with (
        start_dask(n_workers=1, threads_per_worker=4, processes=False, resources=GPU) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        plan = barrow.plan(Alone(tmp_path), DATA, resources=GPU, quiet=True, cluster=client)
        assert plan.slots == 1
        run_all(in_chunks(plan))


def test_a_resource_that_no_worker_offers_is_named(start_dask):
    with (
        start_dask(n_workers=1, threads_per_worker=1, processes=False) as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(InputError, match=r"'negative' asks for 1 GPU, but no worker of the cluster"),
    ):
        barrow.map(np.negative, DATA, resources=GPU, cluster=client)


def test_a_machine_that_has_two_runs_two_tasks_at_once():
    with barrow.cluster("local", workers=3, threads=1, memory="400MB", resources={"GPU": 2}) as two:
        plan = barrow.plan(np.negative, DATA, resources=GPU, quiet=True, cluster=two)
        assert (plan.workers, plan.slots) == (2, 2)
        assert "2 tasks at once: 'negative' asks for 1 GPU and the workers offer 2 GPU" in str(plan)
        assert np.array_equal(barrow.run(in_chunks(plan)).result, -DATA)


def test_the_plan_says_why_there_is_one_task_at_a_time():
    steps, here = [barrow.Step(np.negative, resources=GPU)], Site("process", read_machine())
    plan = plan_pipeline(steps, [barrow.open(np.zeros((400, 400)))], here, {})
    assert plan.resources == GPU
    assert plan.slots == 1
    why = "one task at a time: 'negative' asks for 1 GPU and this machine offers 1 GPU"
    assert why in plan.reasons
    assert barrow.Plan.from_json(plan.to_json()).resources == GPU


def test_fused_steps_ask_for_the_most_that_any_of_them_does():
    steps = [
        barrow.Step(np.sqrt, resources={"GPU": 0.5}),
        barrow.Step(np.negative, resources={"GPU": 0.25, "licence": 1}),
    ]
    plan = barrow.plan(steps, np.ones((4, 4)), quiet=True)
    assert plan.resources == {"GPU": 0.5, "licence": 1}


def test_asking_for_more_than_this_machine_has_is_one_error():
    with pytest.raises(InputError, match=r"asks for 2 GPU, but this machine offers 1"):
        barrow.map(np.negative, DATA, resources={"GPU": 2})


@pytest.mark.parametrize("resources", ["GPU", {"GPU": 0}, {"GPU": "one"}, {"barrow-memory": 1}])
def test_nonsense_is_refused_before_anything_runs(resources):
    with pytest.raises(InputError, match="resources"):
        barrow.map(np.negative, DATA, resources=resources)


def test_a_plan_used_again_runs_no_more_at_once_than_the_steps_allow():
    plan = barrow.plan(np.negative, DATA, resources=GPU, quiet=True)
    many = replace(plan, engine="threads", threads=2)
    with pytest.raises(InputError, match="one task at a time"):
        barrow.plan(np.negative, DATA, resources=GPU, quiet=True, like=many)


# Threads


def count_threads(x):
    """Say in every element how many threads a library of this process may use."""
    from threadpoolctl import threadpool_info

    return np.full_like(x, max(pool["num_threads"] for pool in threadpool_info()))


@pytest.mark.parametrize("engine", ["inline", "threads", "processes"])
def test_libraries_have_the_threads_that_a_task_asks_for(engine):
    step = barrow.Step(count_threads, resources={"threads": 2})
    here = Site("process", replace(read_machine(), cores=4))
    plan = plan_pipeline([step], [barrow.open(DATA)], here, {})
    plan = in_chunks(plan, engine=engine, threads=1, budget_bytes=10**8)
    assert np.all(barrow.run(plan, quiet=True).result == 2)


def test_tasks_that_ask_for_several_threads_do_not_crowd_the_machine():
    steps = [barrow.Step(np.negative, resources={"threads": 3})]
    here = Site("process", replace(read_machine(), cores=8))
    plan = plan_pipeline(steps, [barrow.open(np.zeros((400, 400)))], here, {})
    assert plan.slots <= 2
    assert "asks for 3 threads and this machine offers 8 threads" in plan.reasons[0]


def test_a_worker_gives_its_threads_to_a_task_that_asks_for_all_of_them(start_dask):
    with (
        start_dask(n_workers=1, threads_per_worker=4, processes=False) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        plan = barrow.plan(
            count_threads, DATA, resources={"threads": 4}, quiet=True, cluster=client
        )
        assert plan.slots == 1
        assert np.all(barrow.run(in_chunks(plan)).result == 4)


def test_more_threads_than_a_worker_has_are_refused(local_cluster):
    with pytest.raises(InputError, match=r"asks for 64 threads, but a worker here has only 1\."):
        barrow.map(np.negative, DATA, resources={"threads": 64}, quiet=True)
    with pytest.raises(InputError, match="give a whole number"):
        barrow.map(np.negative, DATA, resources={"threads": 1.5}, quiet=True)


def test_threads_of_a_run_leave_the_cores_to_one_another():
    plan = barrow.plan(count_threads, DATA, quiet=True)
    plan = in_chunks(plan, engine="threads", threads=2, budget_bytes=10**8)
    assert np.all(barrow.run(plan, quiet=True).result == 1)
