"""The engine for Dask goes on when what it counted on is gone."""

import operator

import numpy as np
import pytest
from distributed import Client

from barrow.composing import fuse
from barrow.model.grid import Grid
from barrow.model.site import MEMORY
from barrow.model.step import Step
from barrow.running import dask_engine
from barrow.running.asking import Asking
from barrow.running.backlog import Batch
from barrow.running.dask_engine import DaskEngine
from barrow.running.engines import Setback
from barrow.running.task import Work
from barrow.sources.opening import open_source


@pytest.fixture
def client(start_dask):
    with (
        start_dask(n_workers=2, threads_per_worker=1, processes=False) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def work():
    target = fuse(Step(np.sum, combine=operator.add), [open_source(np.ones(8))])
    return Work(target, Grid({"dim_0": 8}, {"dim_0": 2}), None, budget_bytes=10**8)


def offer(client, units):
    async def set_units(dask_worker):
        await dask_worker.set_resources(**{MEMORY: units[dask_worker.address]})

    client.run(set_units)


def collect_one(engine):
    while not (outcomes := engine.collect()):
        pass
    return outcomes[0]


def test_what_the_only_large_worker_was_to_do_is_done_by_a_smaller_one(client, work, monkeypatch):
    monkeypatch.setattr(dask_engine, "GRACE_SECONDS", 0.0)
    small, large = sorted(client.nthreads())
    offer(client, {small: 10, large: 100})
    engine = DaskEngine(work, client, 2, "total", asking=Asking(100 * 2**20, 1))
    client.retire_workers([large])
    engine.submit(Batch([range(1)]))
    _, report = collect_one(engine)
    assert report.n_cells == 1
    engine.stop()


def test_an_engine_that_is_told_nothing_asks_for_nothing(client, work):
    engine = DaskEngine(work, client, 2, "total")
    engine.submit(Batch([range(1)]))
    outcome = collect_one(engine)
    assert not isinstance(outcome, Setback)
    engine.stop()
