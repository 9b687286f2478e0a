"""Sizes of chunks: which are tried, and what is said of them."""

import json

import numpy as np
import pytest

import barrow
from barrow.errors import InputError
from barrow.model.cost import Cost
from barrow.model.site import Machine, Site
from barrow.planning.planner import make_plan
from barrow.studying.chunks import ChunkStudy, Size, choose_sizes
from barrow.studying.repeat import Repeat, Repeats

MIB = 2**20


def a_plan(cost, memory_bytes=None):
    site = Site("process", Machine("here", 2, 8 * 2**30, 4 * 2**30))
    source = barrow.open(np.broadcast_to(np.float64(1), (4096, 1024)), dims=("y", "x"))
    options = {"wants_store": False, "may_be_parallel": False}
    return make_plan(source, cost=cost, site=site, memory_bytes=memory_bytes, **options)


def size(rows, seconds, *, planned=False):
    taken = Repeats((Repeat(seconds, total_bytes=90 * MIB),))
    chunk = {"y": rows, "x": 1024}
    return Size(chunk, 4096 // rows, rows * 8192, taken, 3 * rows * 8192, seconds, rows, planned)


def test_sizes_lie_around_that_of_the_plan_and_include_it():
    plan = a_plan(Cost(points=((1000, 0.001), (10**6, 0.5)), peak_per_item=16.0))
    found, _ = choose_sizes(plan, points=5)
    items = [candidate.items for candidate in found]
    assert len(found) == 5
    assert items == sorted(items)
    assert dict(plan.grid.chunk) in [candidate.chunk for candidate in found]


def test_sizes_that_do_not_fit_are_left_out_and_named():
    cost = Cost(points=((1000, 0.001), (10**6, 0.5)), peak_per_item=16.0)
    plan = a_plan(cost, memory_bytes=48 * MIB)
    found, left_out = choose_sizes(plan, points=50)
    assert all(candidate.peak_bound <= plan.budget_bytes for candidate in found)
    assert "do not fit" in left_out[0]


def test_sizes_that_would_take_for_ever_are_left_out_and_named():
    plan = a_plan(Cost(points=((1, 0.01), (10**6, 0.02)), peak_per_item=16.0))
    found, left_out = choose_sizes(plan, points=50)
    assert max(candidate.n_chunks for candidate in found) <= 20_000
    assert "take too long" in left_out[-1]


def test_the_plan_is_compared_with_the_fastest():
    study = ChunkStudy("root", (size(64, 3.0), size(256, 2.2, planned=True), size(512, 2.0)))
    assert study.regret == pytest.approx(0.1)
    assert "10% more than the fastest, y 512 × x 1024" in str(study)
    assert "y 256 × x 1024 *" in str(study)
    assert [figure.name for figure in study.study().figures] == ["time", "memory"]
    assert json.loads(study.to_json())["sizes"][1]["is_planned"]


def test_each_size_is_run_and_no_result_stays(tmp_path):
    study = barrow.chunk_study(
        np.sqrt, np.ones((64, 64)), points=2, repeats=2, folder=tmp_path / "kept", quiet=True
    )
    assert [len(size.taken.repeats) for size in study.sizes] == [2, 2]
    assert all(size.taken.seconds > 0 for size in study.sizes)
    assert barrow.record(tmp_path / "kept" / "0-1").status == "done"
    assert not list((tmp_path / "kept").rglob("result.zarr"))


def test_a_pipeline_of_several_stages_is_refused():
    steps = [
        barrow.Step(lambda x: x - x.mean(0), name="centre", whole=["dim_0"]),
        barrow.Step(lambda x: x - x.mean(1, keepdims=True), name="level", whole=["dim_1"]),
    ]
    with pytest.raises(InputError, match="one step at a time"):
        barrow.chunk_study(steps, np.ones((800, 800)), memory="30MB", cluster=False, quiet=True)
