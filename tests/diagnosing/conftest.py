"""Records made by hand: tables of a run that never was."""

import json

import pytest

from barrow.recording.schema import COLUMNS


class Made:
    """A record in memory."""

    def __init__(self, **tables):
        self.facts = {"kind": "watch", "status": "done", "began": 0.0, "ended": 100.0}
        self.facts |= tables.pop("facts", {})
        self._tables = tables

    def columns(self, name):
        rows = self._tables.get(name, [])
        return {column: [row.get(column) for row in rows] for column in COLUMNS[name]}


@pytest.fixture
def made():
    return Made


@pytest.fixture
def event():
    """Make an event."""

    def make(kind, message="", time=1.0, **details):
        return {"time": time, "kind": kind, "message": message, "details": json.dumps(details)}

    return make


@pytest.fixture
def task():
    """Make a task that was done."""

    def make(number, began, seconds, worker="here/1", step="fit", **more):
        return {
            "id": number,
            "step": step,
            "key": f"('{step}', {number})",
            "worker": worker,
            "thread": 1,
            "ready": 0.0,
            "started": began,
            "ended": began + seconds,
            "compute_seconds": seconds,
            "send_seconds": 0.0,
            "spill_seconds": 0.0,
            "received_bytes": 0,
            "result_bytes": 8,
            "attempt": 1,
            "outcome": "done",
            **more,
        }

    return make
