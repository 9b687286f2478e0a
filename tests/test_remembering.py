"""A second run knows what the first has learnt."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.errors import StepError
from barrow.model.applied import Form, apply_step
from barrow.model.cost import Cost
from barrow.model.site import Machine, Site
from barrow.planning.layout import list_layouts, slowdown_of
from barrow.probing.costs import LONG_WORK_SECONDS, SHORT_WORK_SECONDS
from barrow.probing.history import Entry, History
from barrow.remembering import Question, ask_cost, learn_from, mean_task

MACHINE = Machine("here", 4, 16 * 2**30, 10 * 2**30, processor="Model T")
DATA = np.random.default_rng(0).random((300, 400))
FACTOR = 2


@pytest.fixture(autouse=True)
def history(tmp_path, monkeypatch):
    """A history of this test's own."""
    monkeypatch.setenv("BARROW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BARROW_HISTORY", "on")
    monkeypatch.setattr("barrow.places.platform.node", lambda: "some host/1")
    return History(tmp_path / "cache" / "history" / "some_host_1.sqlite")


def counted(x, path, power=2):
    with open(path, "a") as file:
        file.write(".")
    return x**power


def scaled(x):
    return x * FACTOR


def target(func=scaled, shape=(300, 400), dtype="f8", cuttable=("y", "x"), **options):
    source = barrow.open(np.zeros(shape, dtype), dims=("y", "x"))
    step = barrow.Step(func, **options).resolved(source.lengths)
    whole = frozenset(source.dims) - set(cuttable)
    form = Form(source.lengths, source.dtype, frozenset(source.dims), whole)
    return apply_step(step, [source], form)


def key(machine=MACHINE, is_local=True, is_stored=False, **options):
    site = Site("process", machine, is_local=is_local)
    made = target(**options)
    return ask_cost(made, site, total_items=1, budget_bytes=1, is_stored=is_stored).key


# What is the same kind of work.


def test_longer_data_are_the_same_kind_of_work_where_they_can_be_cut():
    assert key(shape=(300, 400)) == key(shape=(3000, 400)) == key(shape=(30, 4000))


def test_the_name_of_a_function_does_not_count():
    def other_name(x):
        return x * FACTOR

    assert key(func=other_name) == key() == key(name="whatever")


def test_all_that_changes_the_cost_changes_the_key():
    keys = [
        key(),
        key(func=lambda x: x / FACTOR),
        key(kwargs={"out": None}),
        key(kwargs={"out": 1}),
        key(dtype="f4"),
        key(cuttable=("y",)),
        key(cuttable=("y",), shape=(300, 500)),
        key(halo={"y": 1}),
        key(halo={"y": 1}, border="mirror"),
        key(whole=("y",)),
        key(combine=lambda a, b: a + b),
        key(is_stored=True),
        key(is_local=False),
        key(machine=replace(MACHINE, host="there")),
        key(machine=replace(MACHINE, cores=8)),
        key(machine=replace(MACHINE, processor="Model S")),
    ]
    assert None not in keys
    assert len(set(keys)) == len(keys)


def test_a_global_that_the_function_uses_changes_the_key(monkeypatch):
    before = key()
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert key() != before


def test_free_memory_does_not_change_the_key():
    assert key(machine=replace(MACHINE, available_bytes=1)) == key()


def test_a_function_that_cannot_be_told_from_others_has_no_key():
    import threading

    lock = threading.Lock()
    assert key(func=lambda x: lock and x) is None


# What a second run does.


def test_a_second_run_calls_the_function_for_its_chunks_only(tmp_path):
    calls = tmp_path / "calls"
    step = barrow.Step(counted, kwargs={"path": str(calls)})
    first = barrow.run(step, DATA, cluster=False)
    assert len(calls.read_text()) > first.plan.n_chunks
    calls.unlink()
    second = barrow.run(step, DATA, cluster=False)
    assert len(calls.read_text()) == second.plan.n_chunks
    assert second.plan.cost.probing_seconds == 0
    np.testing.assert_array_equal(second.result, DATA**2)


def test_another_process_knows_it_too(tmp_path):
    (tmp_path / "script.py").write_text(
        "import barrow, numpy as np\n"
        "SCALE = {'a': 1, 'b': {2, 'x', 'y'}}\n"
        "def centre(x, weights=np.arange(400)):\n"
        "    return x * SCALE['a'] - weights[0]\n"
        "print(barrow.plan(centre, np.ones((300, 400)), halo={0: 1}))\n"
    )
    command = [sys.executable, "script.py"]
    first, second = (
        subprocess.check_output(command, cwd=tmp_path, text=True, timeout=60) for _ in range(2)
    )
    assert "nothing was measured" not in first
    assert "nothing was measured" in second


def test_the_plan_says_that_the_cost_was_remembered():
    assert "nothing was measured" not in str(barrow.plan(scaled, DATA))
    assert "known from an earlier measurement" in str(barrow.plan(scaled, DATA))


def test_a_run_corrects_what_is_known(history):
    run = barrow.run(barrow.Step(np.sort, whole=(1,)), np.tile(DATA, (5, 1)), cluster=False)
    assert history.find(run.plan.cost_key).runs == 1
    again = barrow.run(barrow.Step(np.sort, whole=(1,)), np.tile(DATA, (5, 1)), cluster=False)
    assert "known from 1 earlier run" in str(again.plan)
    assert again.plan.cost != replace(run.plan.cost, probing_seconds=0.0)
    assert history.find(run.plan.cost_key).runs == 2


def test_off_means_that_nothing_is_kept_or_used(history, monkeypatch, tmp_path):
    barrow.plan(scaled, DATA)
    monkeypatch.setenv("BARROW_HISTORY", "off")
    assert barrow.plan(scaled, DATA).cost.probing_seconds > 0
    monkeypatch.setenv("BARROW_CACHE", str(tmp_path / "other"))
    assert barrow.plan(scaled, DATA).cost_key is None
    assert not (tmp_path / "other" / "history").exists()


def test_a_history_that_cannot_be_written_stops_nobody(monkeypatch, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "history").write_text("a file where a folder should be")
    for _ in range(2):
        np.testing.assert_array_equal(barrow.map(scaled, DATA), DATA * 2)


def test_a_plan_that_was_saved_does_not_carry_the_key(tmp_path):
    plan = barrow.plan(scaled, DATA)
    plan.save(tmp_path / "plan.json")
    assert plan.cost_key is not None
    assert barrow.Plan.load(tmp_path / "plan.json") == plan


# What is remembered wrongly.


def moody(x, path):
    with open(path) as file:
        return x.astype(file.read())


def test_an_answer_of_another_form_is_forgotten(tmp_path):
    mood = tmp_path / "mood"
    options = {"kwargs": {"path": str(mood)}, "cluster": False}
    mood.write_text("f4")
    assert barrow.map(moody, DATA, **options).dtype == "f4"
    mood.write_text("f8")
    with pytest.raises(StepError, match="float32"):
        barrow.map(moody, DATA, **options)
    assert barrow.map(moody, DATA, **options).dtype == "f8"
    assert barrow.plan(moody, DATA, **options).cost.probing_seconds == 0


def test_it_is_forgotten_also_when_a_worker_process_notices(tmp_path, local_cluster):
    mood = tmp_path / "mood"
    step = barrow.Step(moody, kwargs={"path": str(mood)})
    mood.write_text("f4")
    assert barrow.run(step, DATA).plan.engine == "dask"
    mood.write_text("f8")
    with pytest.raises(StepError):
        barrow.run(step, DATA)
    assert barrow.run(step, DATA).result.dtype == "f8"


def test_the_form_of_a_step_below_is_forgotten_too(tmp_path):
    mood = tmp_path / "mood"
    first = barrow.Step(moody, kwargs={"path": str(mood)})
    mood.write_text("f4")
    barrow.run([first, np.sqrt], DATA)
    mood.write_text("f8")
    with pytest.raises(StepError):
        barrow.run([first, np.cbrt], DATA)
    assert barrow.run([first, np.cbrt], DATA).result.dtype == "f8"


def test_lengths_that_depend_on_the_values_are_learnt_each_time():
    for last in (5, 9, 7):
        values = np.arange(50_000) % last
        assert barrow.map(np.unique, values).tolist() == list(range(last))


# How far an old measurement is trusted.


KNOWN = Entry(
    cost=Cost(points=((1000, 1e-3),)),
    work_items=2_000_000,
    work_seconds=2.0,
    budget_bytes=1000,
)


@pytest.mark.parametrize(
    ("items", "budget_bytes", "is_trusted"),
    [
        (2_000_000, 1000, True),
        (1_000, 1000, True),
        (3_900_000, 1000, True),
        (4_100_000, 1000, False),
        (2_000_000, 10**9, True),
        (2_000_000, 501, True),
        (2_000_000, 499, False),
    ],
)
def test_a_measurement_is_trusted_for_work_like_that_it_was_made_for(
    history, items, budget_bytes, is_trusted
):
    history.keep("key", KNOWN)
    assert (Question("key", items, budget_bytes).recall() is not None) == is_trusted
    history.keep("key", replace(KNOWN, work_seconds=LONG_WORK_SECONDS))
    assert Question("key", items, budget_bytes).recall() is not None


def test_short_work_needs_no_better_measurement_than_shorter_work(history):
    history.keep("key", replace(KNOWN, work_items=1000, work_seconds=0.001))
    short = int(SHORT_WORK_SECONDS * 1e6)
    assert Question("key", short - 1000, 1000).recall() is not None
    assert Question("key", short + 1000, 1000).recall() is None


# What a run teaches.


TOTALS = {
    "chunks": 4,
    "compute_seconds": 4.0,
    "read_seconds": 0.4,
    "write_seconds": 0.8,
    "written_bytes": 400,
}


def known_plan(history, **changes):
    plan = barrow.plan(scaled, DATA).with_chunks(dim_0=80)
    cost = Cost(points=((1000, 0.01), (30_000, 0.3)))
    history.keep(plan.cost_key, Entry(cost=cost))
    return replace(
        plan, **{"engine": "inline", "workers": 1, "threads": 1, "cost": cost, **changes}
    )


def test_the_first_run_counts_as_much_as_the_measurement(history):
    plan = known_plan(history)
    learn_from(plan, 0, TOTALS)
    entry = history.find(plan.cost_key)
    # 300 rows in chunks of 80: the mean chunk has 75 rows, of 400 items.
    assert entry.cost.seconds(75 * 400) == pytest.approx((0.3 * 1.0) ** 0.5)
    assert entry.runs == 1


@pytest.mark.parametrize(
    ("found", "totals", "changes"),
    [
        (1, TOTALS, {}),
        (0, {**TOTALS, "chunks": 5}, {}),
        (0, {**TOTALS, "compute_seconds": 0.0009}, {}),
        (0, TOTALS, {"cost": Cost(points=((1000, 0.01),), startup_seconds=1.0)}),
        (0, TOTALS, {"cost": Cost()}),
        (0, TOTALS, {"cost_key": None}),
        (0, TOTALS, {"cost_key": "unknown"}),
    ],
)
def test_a_run_that_says_little_teaches_nothing(history, found, totals, changes):
    plan = known_plan(history)
    learn_from(replace(plan, **changes), found, totals)
    assert history.find(plan.cost_key).runs == 0
    assert history.find("unknown") is None


def test_the_mean_task_counts_calls_and_bytes(history):
    seen = mean_task(known_plan(history, strides={"dim_0": 40, "dim_1": 200}), TOTALS)
    assert (seen.items, seen.calls) == (7500, 4)
    assert (seen.compute_seconds, seen.read_seconds, seen.write_seconds) == (1.0, 0.1, 0.2)
    assert (seen.stored_bytes, seen.written_bytes) == (75 * 400 * 8, 100)


def test_the_slowdown_is_the_one_that_the_plan_assumed():
    site = Site("dask", replace(MACHINE, cores=3), workers=2, threads=2)
    cost = Cost(points=((10, 1.0),), thread_slowdown=((1, 2.0),), process_slowdown=((1, 1.5),))
    plan = barrow.plan(scaled, DATA).with_chunks(dim_0=1)
    options = {"cost": cost, "held_bytes": 0, "memory_bytes": None, "may_be_parallel": True}
    for here in (site, replace(site, is_local=False), replace(site, kind="process")):
        for layout in list_layouts(here, **options):
            made = replace(
                plan,
                engine=layout.engine,
                workers=layout.workers,
                threads=layout.threads,
                cores=3,
                is_local=here.is_local,
                cost=cost,
            )
            assert slowdown_of(made, 10) == layout.slowdown(cost, 10)
