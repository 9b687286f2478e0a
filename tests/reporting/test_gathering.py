"""What a report says, from records of all kinds."""

import json
from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.model.cost import Cost
from barrow.model.finding import Finding
from barrow.recording.reading import open_record
from barrow.reporting.figures import draw_figures
from barrow.reporting.gathering import gather
from barrow.reporting.timeline import MOST_TASKS

BEGAN = 1_800_000_000.0
CHUNK = {
    "read_seconds": 0.1,
    "compute_seconds": 0.5,
    "write_seconds": 0.1,
    "cpu_seconds": 0.4,
    "read_bytes": 8,
    "written_bytes": 8,
    "checksum": 1,
    "peak_bytes": 100,
    "worker": "17/main",
    "resident_bytes": 1000,
}


def halve(x):
    return x / 2


@pytest.fixture(scope="module")
def own_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own") / "run"
    plan = barrow.plan(halve, np.ones((40, 50)), cluster=False).with_chunks(dim_0=8)
    return barrow.run(plan, folder=folder)


def test_a_run_of_barrows_own_is_told_in_one_sentence(own_run):
    said = gather(open_record(own_run.folder)).headline
    assert said.startswith("'halve' took ")
    assert "for 5 chunks on 1 thread and held at most " in said
    assert said.endswith("; nothing went wrong, and nothing needs to change.")
    assert said.count(".") - said.count("MiB") <= 4  # a single sentence; the rest are decimals


def test_every_chunk_of_an_own_run_is_drawn_and_predicted(own_run):
    content = gather(open_record(own_run.folder))
    assert content.timeline.total == 5
    assert content.timeline.groups == ("reading", "computing", "writing")
    assert content.prediction.rows[0].measured == "5"
    assert [step.name for step in content.steps] == ["halve"]
    assert content.steps[0].tasks == 5
    assert content.memory.is_sampled
    assert content.left_out == ()


def test_an_edge_chunk_is_predicted_to_need_less(empty_record):
    plan = barrow.plan(halve, np.ones((5, 100)), cluster=False).with_chunks(dim_0=2)
    cost = Cost(points=((200, 0.5),), peak_per_item=16.0)
    plan = replace(plan, items=200, peak_bytes=3200, task_seconds=0.5, seconds=2, cost=cost)
    rows = [{**CHUNK, "chunk": n, "cells": 1, "started": BEGAN + n} for n in (0, 1, 2)]
    record = empty_record.describe(plan=plan.to_json()).add("task", rows)
    prediction = gather(record.read()).prediction
    assert prediction.peak_bytes.predicted == [3200, 3200, 1600]
    assert prediction.seconds.predicted == [0.5, 0.5, 0.25]
    assert prediction.seconds.measured == pytest.approx([0.7, 0.7, 0.7])


def test_a_watched_program_is_told_with_its_troubles(watched):
    content = gather(watched().read())
    assert content.name == "analysis.py"
    assert "400 tasks on 4 workers" in content.headline
    assert content.problems == ("5 tasks failed", "1 worker died")
    assert content.timeline.groups[0] == "read_frames"
    assert content.reproduce == "cd '/data/mouse 7'\npython analysis.py --day 3"
    assert content.settings == {"distributed.worker.memory.target": "0.6"}
    assert {row.heading: row.text for row in content.machine}["memory"] == "32.0 GiB"


def test_pauses_spills_and_deaths_are_marked_where_they_happened(watched):
    marks = gather(watched().read()).memory.marks
    found = {mark.kind: mark for mark in marks}
    assert len(marks) == 3
    assert found["pause"].label == "worker-2"
    assert found["death"].time == pytest.approx(36)
    assert found["spill"].time == pytest.approx(30, abs=1)
    assert all(mark.bytes > 0 for mark in marks)


def test_a_worker_that_was_told_to_go_has_not_died(watched):
    details = json.dumps({"process": "node17/4002"})
    left = {"time": BEGAN + 36, "kind": "left", "message": "Worker 1 left.", "details": details}
    content = gather(watched().forget_events("lost").add("event", [left]).read())
    assert content.problems == ("5 tasks failed",)


def test_what_happens_in_every_run_is_told_once(watched):
    content = gather(watched().read())
    graphs = [event for event in content.events if event.kind == "graph"]
    assert [event.count for event in graphs] == [2]
    assert [(log.count, log.process) for log in content.logs] == [(3, "worker-0")]


def test_spans_hold_the_tasks_of_their_parts(watched):
    spans = gather(watched().read()).spans
    assert [(span.name, span.depth) for span in spans] == [("analysis", 0), ("load", 1), ("fit", 1)]
    assert spans[0].tasks == 400 == spans[1].tasks + spans[2].tasks
    assert not spans[2].has_ended


def test_of_many_tasks_failures_and_the_longest_stay_and_the_rest_is_counted(watched):
    content = gather(watched(tasks=5000).read())
    drawn, blocks = content.timeline.tasks, content.timeline.blocks
    assert len(drawn["lane"]) == MOST_TASKS
    assert drawn["outcome"].count("failed") == 52
    assert len(drawn["lane"]) + sum(blocks["tasks"]) == 5000
    assert min(drawn["seconds"]) < max(drawn["seconds"])
    (said,) = content.left_out
    assert said.startswith("The timeline draws 3,000 of 5,000 tasks one by one")


def test_of_many_workers_the_largest_and_those_that_died_are_shown(watched):
    content = gather(watched(workers=20, threads=1).read())
    memory = content.memory
    assert memory.others == 14
    assert memory.series[-1].label == "largest of 14 others"
    assert "worker-1" in [series.label for series in memory.series]
    assert any("14 others" in said for said in content.left_out)


def test_a_thinned_line_keeps_its_highest_point(empty_record):
    record = empty_record.describe(ended=BEGAN + 5000)
    spike = 1234
    rows = [
        {"time": BEGAN + i, "process": "a", "rss_bytes": 9_000 if i == spike else 100}
        for i in range(5000)
    ]
    (series,) = gather(record.add("sample", rows).read()).memory.series
    assert len(series.time) <= 400
    assert series.time[series.bytes.index(9_000)] == spike


def test_many_steps_share_the_last_colour_and_it_is_grey(watched):
    content = gather(watched(steps=[f"step-{n}" for n in range(9)]).read())
    assert content.timeline.groups[-1] == "4 other steps"
    assert draw_figures(content)["timeline"].legend[5].colour == "muted"


def test_a_task_whose_thread_nobody_knows_stands_with_its_process(empty_record):
    row = {"step": "a", "key": "a", "worker": "w", "attempt": 1, "outcome": "done"}
    row |= {f"{name}_seconds": 0.1 for name in ("compute", "send", "spill")}
    rows = [
        {**row, "id": n, "thread": thread, "started": BEGAN + n, "ended": BEGAN + n + 0.5}
        for n, thread in enumerate([7, None, 8])
    ]
    timeline = gather(empty_record.add("dask_task", rows).read()).timeline
    assert timeline.lanes == ("w · 1", "w · 2")
    assert timeline.tasks["lane"] == [0, 0, 1]


def test_a_run_without_tasks_says_so(empty_record):
    content = gather(empty_record.read())
    assert content.timeline.total == 0
    assert content.headline.startswith("'program' took 1 min 0 s for 0 tasks;")


def test_a_run_of_one_task_has_quantiles_that_are_all_the_same(watched):
    (step,) = gather(watched(tasks=1, steps=["only"]).read()).steps
    assert step.seconds.least == step.seconds.most == step.seconds.high


def test_chunks_computed_in_one_call_are_one_bar(empty_record):
    together = [{**CHUNK, "chunk": n, "cells": 3, "started": BEGAN + 1} for n in (0, 1, 2)]
    alone = [{**CHUNK, "chunk": 3, "cells": 1, "started": BEGAN + 4}]
    timeline = gather(empty_record.add("task", together + alone).read()).timeline
    assert timeline.tasks["label"] == ["chunks 0 to 2", "chunk 3"]
    assert timeline.tasks["seconds"] == pytest.approx([2.1, 0.7])


def test_chunks_of_an_earlier_part_count_as_done_but_are_not_drawn(empty_record):
    plan = barrow.plan(halve, np.ones((4, 100)), cluster=False).with_chunks(dim_0=1)
    times = {0: BEGAN - 3600, 1: BEGAN - 3599, 2: BEGAN + 1, 3: BEGAN + 2}
    rows = [{**CHUNK, "chunk": n, "cells": 1, "started": at} for n, at in times.items()]
    content = gather(empty_record.describe(plan=plan.to_json()).add("task", rows).read())
    assert content.timeline.tasks["label"] == ["chunk 2", "chunk 3"]
    assert {row.heading: row.text for row in content.tiles}["chunks"] == "4"
    found = {row.heading: row.value for row in content.metrics}
    assert found["chunks taken over from an earlier run"] == 2


def test_attempts_that_only_dask_knows_of_stand_beside_the_chunks(watched):
    rows = [{**CHUNK, "chunk": 0, "cells": 1, "started": BEGAN + 1}]
    content = gather(watched(tasks=200).add("task", rows).read())
    assert content.timeline.total == 1 + 3
    assert content.timeline.tasks["outcome"].count("failed") == 3


@pytest.mark.parametrize(
    ("is_alive", "said"),
    [
        (None, "has no end in its record"),
        (True, "has been running for"),
        (False, "was killed after"),
    ],
)
def test_a_run_without_an_end_says_what_is_known(watched, is_alive, said):
    record = watched().forget("ended")
    assert said in gather(record.read(), is_alive=is_alive).headline


def test_a_run_that_was_taken_up_and_killed_does_not_carry_the_old_end(watched):
    record = watched().describe(status="interrupted", ended=BEGAN - 3600)
    assert gather(record.read(), is_alive=False).status == "killed"


def test_the_first_finding_is_what_is_wrong_and_what_to_change(watched):
    finding = Finding(
        "DAT01",
        "warning",
        "Workers waited for the disk.",
        ("60 % of the time",),
        "Use larger chunks.",
    )
    content = gather(watched().read(), findings=[finding])
    assert content.headline.endswith(
        "; Workers waited for the disk; what to do: Use larger chunks."
    )


def test_all_of_it_is_json_without_nan(watched, own_run):
    for record in (watched().read(), open_record(own_run.folder)):
        text = gather(record).to_json()
        assert json.loads(text)["barrow_report"] == 1
        assert "NaN" not in text
