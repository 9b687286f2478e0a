import sqlite3
from pathlib import Path

import pytest

from barrow.recording.record import RecordWriter, describe_environment
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


def test_the_reference_page_names_every_table_and_column():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "record.md").read_text()
    assert f"schema version {VERSION} " in page
    for table, columns in COLUMNS.items():
        section = page.split(f"\n## {table}\n")[1].split("\n## ")[0]
        assert all(f"| `{column}` |" in section for column in columns), table
