"""``barrow.watch`` and ``barrow.span`` inside a program."""

import copy
import os
import signal
import subprocess
import sys
import time

import dask
import dask.array as da
import numpy as np
import pytest

import barrow
from barrow.errors import InputError


def spans_of_steps(record):
    names = record.table("span").set_index("id")["name"]
    tasks = record.table("dask_task")
    return set(zip(tasks["step"], tasks["span"].map(names), strict=True))


def test_a_cluster_that_is_up_is_watched_and_left_as_it_was(local_cluster, tmp_path):
    client = local_cluster.client
    with barrow.watch(tmp_path / "run") as run:
        assert sum(client.gather(client.map(abs, range(-50, 0), key="absolute"))) == 1275
    tasks = run.record.table("dask_task")
    assert len(tasks) == 50
    assert set(tasks["outcome"]) == {"done"}
    assert run.metrics["status"] == "done"
    assert run.metrics["workers"] == 2
    assert not run.record.query("select * from event where kind = 'watching'").size
    assert client.submit(abs, -3).result() == 3
    plugins = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins))
    assert "barrow-watch" not in plugins
    assert client.run(lambda dask_worker: list(dask_worker.metrics)).popitem()[1] == []


def test_a_task_names_the_one_whose_end_made_it_ready_and_counts_its_inputs(
    local_cluster, tmp_path
):
    client = local_cluster.client
    one, two = (dask.delayed(abs)(-number, dask_key_name=f"a-{number}") for number in (1, 2))
    both = dask.delayed(max)(one, two, dask_key_name="both")
    with barrow.watch(tmp_path / "run") as run:
        client.compute(dask.delayed(abs)(both, dask_key_name="last")).result()
    tasks = run.record.table("dask_task").set_index("key")
    assert tasks["waited_for"]["last"] == "both"
    assert tasks["waited_for"]["both"] in ("a-1", "a-2")
    assert tasks["waited_for"][["a-1", "a-2"]].isna().all()
    assert tasks["inputs"][["a-1", "both", "last"]].tolist() == [0, 2, 1]


def test_what_a_cluster_did_before_is_not_counted(local_cluster, tmp_path):
    client = local_cluster.client
    client.submit(sum, (1, 2), key="before-1").result()

    def has_measured(dask_scheduler):
        return any("before" in key for key in dask_scheduler.cumulative_worker_metrics)

    while not client.run_on_scheduler(has_measured):  # comes with the next sign of life
        time.sleep(0.05)
    with barrow.watch(tmp_path / "run") as run:
        client.submit(sum, (1, 2), key="during-1").result()
    facts = run.record.facts.items()
    counted = [key for name, values in facts if name.startswith("activity") for key in values]
    assert not [key for key in counted if "before" in key]


def test_spans_label_what_is_built_and_what_is_handed_in(local_cluster, tmp_path):
    client = local_cluster.client
    with barrow.watch(tmp_path / "run") as run:
        with barrow.span("outer"):
            with barrow.span("build"):
                image = da.from_array(np.ones((40, 40)), chunks=10) + 1
            with barrow.span("futures"):
                client.submit(abs, -1, key="one").result()
        image.compute()
        client.submit(abs, -1, key="two").result()
    found = spans_of_steps(run.record)
    assert ("one", "futures") in found
    assert any(span == "build" for step, span in found if "add" in step)
    assert not {span for step, span in found if step == "two"} & {"futures", "build", "outer"}
    spans = run.record.table("span").set_index("name")
    assert spans.loc["build", "parent"] == spans.loc["outer", "id"]
    assert (spans["ended"] >= spans["started"]).all()


def test_spans_do_not_change_how_tasks_are_fused(tmp_path):
    def build():
        return ((da.ones((40, 40), chunks=10) + 1) * 2).sum()

    plain = len(dask.optimize(build())[0].dask)
    with barrow.watch(tmp_path / "run"):
        with barrow.span("a"):
            labelled = build()
        with barrow.span("b"):
            assert len(dask.optimize(labelled)[0].dask) == plain


def test_spans_work_without_a_cluster(tmp_path):
    with barrow.watch(tmp_path / "run") as run, barrow.span("all"):
        da.ones((40, 40), chunks=10).sum().compute(scheduler="threads")
        da.ones((40, 40), chunks=10).sum().compute(scheduler="sync")
    assert {span for _, span in spans_of_steps(run.record)} == {"all"}


def test_the_times_of_threads_add_up(tmp_path):
    with barrow.watch(tmp_path / "run") as run:
        da.ones((1000, 1000), chunks=100).sum().compute(scheduler="threads", num_workers=2)
    metrics = run.metrics
    states = ("compute", "transfer", "spill", "overhead", "idle", "starting")
    total = sum(metrics[f"{state}_seconds"] for state in states)
    assert metrics["slots"] >= 1
    assert total == pytest.approx(metrics["slots"] * metrics["wall_seconds"], rel=0.02)


def test_an_error_passes_through_and_is_recorded(tmp_path):
    with pytest.raises(ZeroDivisionError), barrow.watch(tmp_path / "run") as run:
        dask.delayed(lambda: 1 / 0)().compute(scheduler="sync")
    assert run.metrics["status"] == "failed"
    assert run.metrics["tasks_failed"] == 1


def test_five_thousand_tasks_are_all_there(tmp_path):
    with barrow.watch(tmp_path / "run") as run:
        da.ones((5000,), chunks=1).map_blocks(np.negative).compute(scheduler="sync")
    tasks = run.record.table("dask_task")
    assert len(tasks) >= 5000
    assert tasks["key"].is_unique


def test_one_watch_at_a_time(tmp_path):
    with barrow.watch(tmp_path / "one"), pytest.raises(InputError, match="one watch at a time"):
        barrow.watch(tmp_path / "two").__enter__()


def test_settings_of_the_user_are_not_touched(tmp_path):
    import distributed  # noqa: F401

    before = copy.deepcopy(dask.config.config)
    with barrow.watch(tmp_path / "run"):
        assert dask.config.config == before
    assert dask.config.config == before


def test_a_program_that_watches_itself_and_is_killed_leaves_a_record(tmp_path):
    script = (
        "import barrow, sys, dask, os, signal\n"
        "with barrow.watch(sys.argv[1]) as run:\n"
        "    dask.delayed(abs)(-1).compute(scheduler='sync')\n"
        "    while run.record.table('dask_task').empty: pass\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")])
    assert done.returncode == -signal.SIGKILL
    record = barrow.record(tmp_path / "run")
    assert record.status == "killed"
    assert "ended" not in record.facts
    assert len(record.table("dask_task")) == 1
    assert record.metrics["tasks_done"] == 1


def test_a_notebook_cell_is_watched(tmp_path, monkeypatch, capsys):
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "barrow")
    shell.run_cell_magic("watch", "here", "import dask\nx = dask.delayed(abs)(-1).compute()\n")
    assert shell.user_ns["x"] == 1
    assert shell.user_ns["watched"].metrics["tasks"] == 1
    assert "record in" in capsys.readouterr().out
    assert os.path.exists("here/record.sqlite")
