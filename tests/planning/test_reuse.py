"""A plan is used again where it fits, and refused with all reasons where not."""

from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.errors import BudgetError, InputError
from barrow.model.applied import Form, apply_step
from barrow.model.cost import Cost
from barrow.model.site import Machine, Site
from barrow.planning.planner import make_plan
from barrow.planning.reuse import Here, list_misfits, reuse_plan
from barrow.planning.stored import divides

GIB = 2**30
LARGE = Machine("there", cores=16, total_bytes=64 * GIB, available_bytes=60 * GIB)
SMALL = Machine("here", cores=2, total_bytes=24 * GIB, available_bytes=20 * GIB)
THERE, HERE = Here(Site("process", LARGE)), Here(Site("process", SMALL))
COST = Cost(points=((10**3, 1e-5), (10**7, 1e-1)), peak_per_item=16.0, probing_seconds=3.0)


def target(lengths=None, dtype="f4", name="sqrt", whole=(), answer="f4"):
    lengths = lengths or {"y": 20_000, "x": 10_000}
    values = np.broadcast_to(np.zeros((), dtype), tuple(lengths.values()))
    source = barrow.open(values, dims=tuple(lengths))
    form = Form(source.lengths, np.dtype(answer), frozenset(lengths), frozenset(whole))
    return apply_step(barrow.Step(np.sqrt, name=name), [source], form)


def plan(here=HERE, cost=COST, **options):
    settings = {"memory_bytes": None, "wants_store": False, "may_be_parallel": True, **options}
    return make_plan(target(), cost=cost, site=here.site, **settings)


def test_the_same_work_at_the_same_place_gives_the_same_plan():
    like = plan()
    again = reuse_plan(like, target(), HERE)
    assert replace(again, reasons=()) == replace(like, reasons=())
    assert again.cost.probing_seconds == 0
    assert list_misfits(like, target(), HERE) == []


def test_chunks_are_kept_for_longer_and_shorter_data():
    like = replace(plan(), chunks={"y": 100, "x": 500})
    longer = reuse_plan(like, target({"y": 50_000, "x": 10_000}), HERE)
    assert longer.chunks == {"y": 100, "x": 500}
    assert longer.seconds > 2 * like.seconds
    assert reuse_plan(like, target({"y": 60, "x": 80}), HERE).chunks == {"y": 60, "x": 80}


def test_a_dimension_that_was_whole_stays_whole_when_it_is_longer():
    like = replace(plan(), chunks={"y": 100, "x": 10_000}, cuttable=("y",))
    again = reuse_plan(like, target({"y": 50_000, "x": 12_000}, whole=("x",)), HERE)
    assert again.chunks == {"y": 100, "x": 12_000}


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (target(name="root"), "it is for the steps 'sqrt', but these are 'root'"),
        (target({"t": 5, "y": 20, "x": 10}), "it cuts the dimensions 'y', 'x', but here are 't'"),
        (target(dtype="f8"), "it was made for float32, but 'array' is float64"),
        (target(answer="f8"), "its result is float32, but this one is float64"),
        (target(whole=("y",)), "it cuts 'y' into chunks of 100, but 'sqrt' can be cut along 'x'"),
    ],
)
def test_what_does_not_fit_is_named(other, reason):
    like = replace(plan(), chunks={"y": 100, "x": 500})
    assert len(list_misfits(like, other, HERE)) == 1
    with pytest.raises(InputError, match="Make it again") as caught:
        reuse_plan(like, other, HERE)
    assert reason in str(caught.value)


def test_all_reasons_are_in_one_error():
    like = replace(plan(THERE), chunks={"y": 100, "x": 500}, engine="threads", threads=16)
    with pytest.raises(InputError) as caught:
        reuse_plan(like, target(dtype="f8", answer="f8"), HERE)
    message = str(caught.value)
    assert message.count("\n- ") == 3
    assert "it runs 16 tasks at once and was made on a machine with 16 cores" in message


def test_a_kind_of_work_that_differs_is_a_misfit():
    like = replace(plan(), dtype="")
    assert list_misfits(like, target(), HERE) == ["it is for a reduction, but this is a map"]


def test_more_memory_than_is_free_is_an_error_with_the_numbers():
    like = replace(plan(THERE), engine="threads", workers=1, threads=2, result="store")
    like = replace(like, chunks={"y": 20_000, "x": 10_000})
    tight = Here(Site("process", replace(SMALL, available_bytes=4 * GIB)))
    with pytest.raises(BudgetError, match=r"16 cores and 60\.0 GiB free; here are 2 and 4\.00 G"):
        reuse_plan(like, target(), tight)
    with pytest.raises(BudgetError, match=r"2 tasks need up to 6\.26 GiB"):
        reuse_plan(like, target(), tight)
    allowed = reuse_plan(like, target(), replace(tight, memory_bytes=8 * GIB))
    assert allowed.slots * allowed.budget_bytes <= 8 * GIB


def test_a_chunk_made_larger_by_hand_may_use_what_is_there():
    like = replace(plan(memory_bytes=GIB, wants_store=True), chunks={"y": 20_000, "x": 5000})
    again = reuse_plan(like, target(), replace(HERE, wants_store=True))
    assert again.budget_bytes >= again.peak_bound_bytes > like.budget_bytes


def test_storage_chunks_follow_chunks_that_were_changed_by_hand():
    like = plan(wants_store=True)
    kept = reuse_plan(like, target(), replace(HERE, wants_store=True))
    assert kept.stored_chunks == like.stored_chunks
    changed = replace(like, chunks={"y": 30, "x": 70})
    again = reuse_plan(changed, target(), replace(HERE, wants_store=True))
    assert again.chunks == {"y": 30, "x": 70}
    assert divides(again.stored_chunks, again.chunks, again.lengths)


def test_strides_are_kept_where_the_data_can_be_cut():
    like = replace(plan(), chunks={"y": 100, "x": 10_000}, strides={"y": 10, "x": 50})
    assert reuse_plan(like, target(), HERE).strides == {"y": 10, "x": 50}
    whole = reuse_plan(like, target(whole=("x",)), HERE)
    assert whole.strides == {"y": 10, "x": 10_000}
    none = replace(like, strides={"y": 500})
    assert reuse_plan(none, target(), HERE).strides == {}


def test_a_plan_for_a_cluster_needs_one():
    like = replace(plan(), engine="dask", workers=4, threads=1)
    assert "there is none" in list_misfits(like, target(), HERE)[0]
    two = Here(Site("dask", SMALL, workers=2, threads=1, limit_bytes=GIB))
    assert "4 workers with 1 thread, but the cluster has 2" in list_misfits(like, target(), two)[0]
    four = Here(Site("dask", SMALL, workers=4, threads=1, limit_bytes=GIB))
    assert list_misfits(like, target(), four) == []


def test_sequential_work_rules_threads_out():
    alone = replace(HERE, may_be_parallel=False)
    like = replace(plan(), engine="threads", threads=2)
    assert "cluster=False rules that out" in list_misfits(like, target(), alone)[0]
