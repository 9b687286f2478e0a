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
