import sqlite3

import pytest

from barrow.errors import OutputError
from barrow.recording.opening import begin_record, read_fact
from barrow.recording.record import RecordWriter

CHUNK = (4, 0.0, 0.1, 0.2, 0.1, 0.3, 800, 900, 1, (77,), 50)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "record.sqlite"
    with RecordWriter(path) as record:
        record.note_chunks("1/a", 5, [CHUNK])
        record.describe({"plan": "{}"})
    return path


def test_a_sound_record_is_opened_as_it_is(path):
    record, fault = begin_record(path)
    with record:
        assert record.finished_chunks() == {4}
    assert fault == ""
    assert read_fact(path, "plan") == "{}"


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\x00" + b"\xff" * 9000])
def test_what_is_no_record_is_moved_aside_and_kept(path, content):
    for number in (1, 2):
        path.write_bytes(content)
        record, fault = begin_record(path)
        with record:
            assert record.finished_chunks() == set()
        assert f"It is kept as damaged-{number}.sqlite" in fault
        assert (path.parent / f"damaged-{number}.sqlite").read_bytes() == content


def test_a_fact_of_a_record_that_cannot_be_read_is_not_known(path):
    assert read_fact(path, "nothing") is None
    path.write_bytes(b"garbage" * 1000)
    assert read_fact(path, "plan") is None
    path.unlink()
    assert read_fact(path, "plan") is None
    assert not path.exists()


def test_a_record_in_use_is_left_alone(path, monkeypatch):
    monkeypatch.setattr("barrow.recording.opening.BUSY_SECONDS", 0.01)
    other = sqlite3.connect(path)
    other.execute("pragma locking_mode=exclusive")
    other.execute("begin exclusive")
    with pytest.raises(OutputError, match="Another program is using"):
        begin_record(path)
    other.close()
    assert begin_record(path)[1] == ""


def test_a_place_where_no_file_can_be_made_is_one_error(tmp_path):
    (tmp_path / "record.sqlite").mkdir()
    with pytest.raises(OutputError, match="cannot be used"):
        begin_record(tmp_path / "record.sqlite")
