"""A plan is plain data: shown, saved, edited by hand, read back."""

import json
from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.errors import InputError
from barrow.model.cost import Cost

SEEN = {"wall_seconds": 11.0, "task_seconds": 0.5, "chunks": 4, "peak_resident_bytes": 2**27}


@pytest.fixture(scope="module")
def plan():
    found = barrow.plan(np.sqrt, np.ones((40, 50)), name="root", memory="1GB")
    cost = Cost(points=((100, 1.0),), spread=0.1, read_seconds_per_byte=1e-4)
    return replace(found, seconds=10.0, task_seconds=0.25, cost=cost)


@pytest.fixture(scope="module")
def nested(plan):
    first = replace(plan, name="first", steps=("first",), result="store")
    return replace(plan, before=(replace(first, stored_chunks={"dim_0": 40, "dim_1": 5}),))


def edited(plan, **fields):
    return json.dumps({**json.loads(plan.to_json()), **fields})


def test_the_time_is_shown_with_its_range(plan):
    assert "about 10.0 s (7.7 s to 13.0 s)" in str(plan)
    wide = replace(plan, cost=replace(plan.cost, spread=1.0))
    assert "about 10.0 s (5.0 s to 20.0 s)" in str(wide)


def test_a_plan_that_has_not_run_has_two_columns(plan):
    assert all(row.measured == "" for row in plan.rows())
    assert "measured" not in str(plan)
    assert "measured" not in plan._repr_html_()
    assert "of the" in {row.heading: row.text for row in plan.rows()}["peak"]


def test_after_the_run_measured_stands_beside_predicted(plan):
    ran = replace(plan, measured=SEEN)
    measured = {row.heading: row.measured for row in ran.rows() if row.measured}
    assert measured["time"] == "11.0 s"
    assert measured["one task"] == "500 ms on average"
    assert measured["chunks"] == "4"
    assert measured["peak"].startswith("128 MiB")
    header = str(ran).splitlines()[1]
    line = next(line for line in str(ran).splitlines() if line.startswith("time"))
    assert line.index("11.0 s") == header.index("measured")
    assert "<th>measured</th>" in ran._repr_html_()
    assert ran == plan


def test_the_peak_of_a_task_is_preferred_to_that_of_the_process(plan):
    rows = replace(plan, measured={**SEEN, "peak_task_bytes": 2**20}).rows()
    assert next(row.measured for row in rows if row.heading == "peak") == "1.00 MiB"


def test_strides_are_shown(plan):
    assert "walked" not in str(plan)
    text = str(replace(plan, strides={"dim_0": 4, "dim_1": 50}))
    assert "walked in blocks of dim_0 4 × dim_1 50" in text


def test_all_stages_are_shown_with_what_lies_between(nested):
    text = str(nested)
    assert text.startswith("Plan for 'root' in 2 stages\n1. first\n")
    assert "in a Zarr store, chunks of 40 × 5" in text
    assert "1.6 s to read" in text
    assert "about 20.0 s" in text.splitlines()[-1]
    assert nested.total_seconds == 20.0
    html = nested._repr_html_()
    assert "1. first" in html
    assert html.count("<tr>") == html.count("</tr>")


def test_a_plan_in_stages_comes_back_as_it_was_saved(nested, tmp_path):
    ran = replace(nested, measured=SEEN)
    ran.save(tmp_path / "plan.json")
    loaded = barrow.Plan.load(tmp_path / "plan.json")
    assert loaded == ran
    assert loaded.before[0].cost == ran.before[0].cost
    assert loaded.measured == SEEN
    assert str(loaded) == str(ran)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("chunks", {"dim_0": -5}, "chunks is {'dim_0': -5}, but must be whole numbers of 1"),
        ("chunks", {"dim_0": "many"}, "chunks is"),
        ("chunks", {"z": 5}, "chunks names 'z', but the dimensions are 'dim_0', 'dim_1'"),
        ("stored_chunks", {"z": 5}, "stored_chunks names 'z'"),
        ("strides", [4], "strides is"),
        ("workers", 0, "workers is 0, but must be a whole number of 1 or more"),
        ("threads", True, "threads is True"),
        ("engine", "fast", "engine is 'fast', but must be one of inline, threads"),
        ("budget_bytes", "4GB", "budget_bytes is '4GB'"),
        ("seconds", float("nan"), "seconds is nan"),
        ("dtype", "float31", "dtype is 'float31'"),
        ("cost", {"points": [["x", 1]]}, "cost is not what barrow saved"),
        ("cost", {"spread": "wide"}, "cost is"),
        ("speed", 3, "'speed' is no field of a plan"),
        ("before", [{"name": "first"}], r"before\[0\] is not a plan that barrow saved: it has no"),
        ("before", [7], r"before\[0\] is not a plan"),
    ],
)
def test_nonsense_in_a_file_is_one_error_that_names_the_field(plan, field, value, message):
    with pytest.raises(InputError, match=f"^mine.json: {message}"):
        barrow.Plan.from_json(edited(plan, **{field: value}), where="mine.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"barrow_plan": 3}', '{"barrow_plan": 1}'])
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(InputError, match=r"not a plan|saved in format"):
        barrow.Plan.from_json(text)


def test_a_file_that_is_not_there_is_one_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read as a plan: No such file"):
        barrow.Plan.load(tmp_path / "nowhere.json")
