import sqlite3

from barrow.recording.record import RecordWriter, describe_environment

CHUNK = (4, 0.0, 0.1, 0.2, 0.1, 0.3, 800, 900)


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
