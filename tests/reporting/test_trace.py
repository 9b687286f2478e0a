"""The trace for Perfetto."""

import io
import json
from collections import defaultdict
from itertools import pairwise

import pytest

from barrow.reporting.trace import write_trace


@pytest.fixture
def events(watched):
    file = io.StringIO()
    count = write_trace(watched(tasks=200).read(), file)
    found = json.loads(file.getvalue())["traceEvents"]
    assert len(found) == count
    return found


def of_kind(events, kind):
    return [event for event in events if event["ph"] == kind]


def test_every_task_is_a_complete_event_on_the_thread_of_its_worker(events):
    tasks = [event for event in of_kind(events, "X") if event["cat"] == "task"]
    assert len(tasks) == 200
    names = {
        event["pid"]: event["args"]["name"]
        for event in of_kind(events, "M")
        if event["name"] == "process_name"
    }
    workers = {names[event["pid"]] for event in tasks}
    assert workers == {"worker-0", "worker-1", "worker-2", "worker-3"}
    assert all(
        isinstance(event[key], int) for event in tasks for key in ("ts", "dur", "pid", "tid")
    )


def test_events_of_one_thread_never_overlap(events):
    lanes = defaultdict(list)
    for event in of_kind(events, "X"):
        if event["cat"] == "task":
            lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in lanes.values():
        spans.sort()
        for (_, end), (start, _) in pairwise(spans):
            assert end <= start


def test_memory_is_a_counter_of_its_process(events):
    counters = of_kind(events, "C")
    assert len({event["pid"] for event in counters}) == 4
    assert counters[0]["args"].keys() == {"process", "managed", "spilled"}


def test_events_are_instants_and_spans_are_nested_on_the_program(events):
    assert {event["name"] for event in of_kind(events, "i")} == {
        "graph",
        "paused",
        "resumed",
        "lost",
    }
    spans = [event["name"] for event in events if event.get("cat") == "span"]
    assert spans == ["analysis", "load", "fit"]
