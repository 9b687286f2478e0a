import sqlite3
from pathlib import Path

import pytest

from barrow.recording.environment import describe_environment
from barrow.recording.record import RecordWriter
from barrow.recording.schema import COLUMNS, VERSION

CHUNK = (4, 0.0, 0.1, 0.2, 0.1, 0.3, 800, 900, 1, (77,), 50)


def test_a_record_can_be_read_while_it_is_written(tmp_path):
    path = tmp_path / "record.sqlite"
    with RecordWriter(path) as record:
        record.note_chunks("1/a", 5, [CHUNK])
        record.describe({"status": "running"})
        rows = (
            sqlite3.connect(path)
            .execute("select chunk, worker, written_bytes from task")
            .fetchall()
        )
    assert rows == [(4, "1/a", 900)]


def test_a_chunk_is_safe_as_soon_as_it_is_noted(tmp_path, monkeypatch):
    monkeypatch.setattr("barrow.recording.record.COMMIT_SHARE", 1.0)
    with RecordWriter(tmp_path / "record.sqlite") as record:
        for number in range(3):
            record.note_chunks("1/a", 5, [(number, *CHUNK[1:])])
            other = sqlite3.connect(tmp_path / "record.sqlite")
            assert other.execute("select count(*) from task").fetchone() == (number + 1,)


def test_reports_that_come_too_fast_are_put_together(tmp_path, monkeypatch):
    monkeypatch.setattr("barrow.recording.record.COMMIT_SHARE", -1.0)
    monkeypatch.setattr("barrow.recording.record.COMMIT_SECONDS", 1000.0)
    with RecordWriter(tmp_path / "record.sqlite") as record:
        record.note_chunks("1/a", 5, [CHUNK])
        other = sqlite3.connect(tmp_path / "record.sqlite")
        assert other.execute("select count(*) from task").fetchone() == (0,)
    assert other.execute("select count(*) from task").fetchone() == (1,)


def test_a_chunk_that_was_done_again_counts_once(tmp_path):
    with RecordWriter(tmp_path / "record.sqlite") as record:
        record.note_chunks("1/a", 5, [CHUNK])
        record.note_chunks("2/b", 7, [CHUNK])
        totals = record.totals()
    assert totals["chunks"] == 1
    assert totals["read_bytes"] == 800
    assert totals["peak_resident_bytes"] == 7


def test_the_environment_names_the_versions_that_matter():
    assert "numpy" in describe_environment()["versions"]


def test_chunks_computed_in_one_call_have_a_row_each_and_the_same_sums(tmp_path):
    together = (4, 0.0, 0.1, 0.2, 0.1, 0.3, 800, 901, 3, (7, 8, None), 50)
    with RecordWriter(tmp_path / "record.sqlite") as record:
        record.note_chunks("1/a", 5, [together])
        assert record.finished_chunks() == {4, 5, 6}
        totals = record.totals()
    assert totals["chunks"] == 3
    assert (totals["read_bytes"], totals["written_bytes"]) == (800, 901)
    assert totals["compute_seconds"] == pytest.approx(0.2)
    assert totals["peak_task_bytes"] == 50


def test_every_chunk_has_its_checksum_and_can_be_taken_out_again(tmp_path):
    together = (4, 0.0, 0.1, 0.2, 0.1, 0.3, 800, 901, 3, (7, 8, None), 50)
    with RecordWriter(tmp_path / "record.sqlite") as record:
        record.note_chunks("1/a", 5, [together])
        assert record.checksums() == {4: 7, 5: 8, 6: None}
        record.forget_chunks({5})
        assert record.finished_chunks() == {4, 6}


def test_events_are_kept_with_their_numbers(tmp_path):
    path = tmp_path / "record.sqlite"
    with RecordWriter(path) as record:
        record.note_event("resized", "Larger from here on.", {"cells": 8})
        (row,) = sqlite3.connect(path).execute("select kind, message, details from event")
    assert row == ("resized", "Larger from here on.", '{"cells": 8}')


def test_a_record_of_another_version_is_begun_anew(tmp_path):
    path = tmp_path / "record.sqlite"
    with RecordWriter(path) as record:
        record.note_chunks("1/a", 5, [CHUNK])
        record.describe({"schema": 1})
    with RecordWriter(path) as record:
        assert record.finished_chunks() == set()
        record.note_chunks("1/a", 5, [CHUNK])


@pytest.fixture
def full_disk(monkeypatch):
    """Return a function that lets a record find no room, or find it again."""

    def set_room(record, pages):
        # SQLite's own limit of pages says the same as a full disk.
        record._db.execute(f"pragma max_page_count={pages}")

    return set_room


def many(first):
    return [(first + n, *CHUNK[1:]) for n in range(2000)]


def test_entries_that_find_no_room_wait_in_memory(tmp_path, full_disk):
    path = tmp_path / "record.sqlite"
    with RecordWriter(path) as record:
        full_disk(record, 1)
        record.note_chunks("1/a", 5, many(0))
        assert not record.flush()
        assert "full" in record.trouble
        record.note_event("paused", "No room.", {})
        full_disk(record, 2**30)
        assert record.flush()
        assert not record.trouble
        assert len(record.finished_chunks()) == 2000
    (kind,) = sqlite3.connect(path).execute("select kind from event").fetchone()
    assert kind == "paused"


def test_a_record_that_finds_no_room_can_be_closed(tmp_path, full_disk):
    record = RecordWriter(tmp_path / "record.sqlite")
    full_disk(record, 1)
    record.note_chunks("1/a", 5, many(0))
    record.close()
    with RecordWriter(tmp_path / "record.sqlite") as record:
        assert record.finished_chunks() == set()


def test_a_record_that_may_leave_the_disk_goes_on_in_memory(tmp_path, full_disk):
    with RecordWriter(tmp_path / "record.sqlite", may_leave_disk=True) as record:
        record.note_chunks("1/a", 5, [CHUNK])
        record.flush()
        full_disk(record, 1)
        record.note_chunks("1/a", 5, many(10))
        assert record.flush()
        assert record.totals()["chunks"] == 2001


def test_the_reference_page_names_every_table_and_column():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "record.md").read_text()
    assert f"schema version {VERSION} " in page
    for table, columns in COLUMNS.items():
        section = page.split(f"\n## {table}\n")[1].split("\n## ")[0]
        assert all(f"| `{column}` |" in section for column in columns), table
