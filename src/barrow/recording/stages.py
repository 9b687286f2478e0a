"""Take the record of an earlier stage into that of the next one: a pipeline has one record."""

from contextlib import closing
from pathlib import Path
from typing import Any

from barrow.errors import InputError
from barrow.model.facts import read_plan
from barrow.recording.reading import Record
from barrow.recording.record import RecordWriter

BATCH = 10_000
"""Rows that are in memory at once."""
_KEPT = ("stage_task", "process", "sample", "event", "log")
# Not dask_task: its rows have numbers of their own, and an own run leaves none.


def take_over(record: RecordWriter, earlier_path: Path) -> None:
    """Copy what is known of the stages before; nothing is done twice, and nothing must be there."""
    earlier = Record(earlier_path)
    try:
        facts = earlier.facts
    except InputError:
        return  # it was kept in memory, for want of a disk
    plan = read_plan(facts)
    if plan is None:
        return
    before = list(facts.get("stages") or [])
    began = float(facts.get("began") or 0)
    stage = {"name": plan.name, "steps": plan.steps, "began": began, "ended": facts.get("ended")}
    if _read_stages(record.path) == [*before, stage]:
        return  # this run was taken up again
    record.describe({"stages": [*before, stage]})
    own = f"select {len(before)}, ?, * from task where started >= ?"
    _copy(earlier, record, "stage_task", own, (plan.name, began))
    for table in _KEPT:
        _copy(earlier, record, table, f"select * from {table}")


def _copy(
    earlier: Record, record: RecordWriter, table: str, question: str, values: tuple[Any, ...] = ()
) -> None:
    with closing(earlier.connect()) as db:
        rows = db.execute(question, values)
        while batch := rows.fetchmany(BATCH):
            record.note_rows(table, batch)
            record.flush()


def _read_stages(path: Path) -> list[dict[str, Any]]:
    try:
        return list(Record(path).facts.get("stages") or [])
    except InputError:
        return []
