"""The history is a convenience: it never raises, and forgets rather than fails."""

import json
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from barrow.model.applied import Form
from barrow.model.cost import Cost
from barrow.probing import history as module
from barrow.probing.history import Entry, History

COST = Cost(points=((1000, 0.001), (100_000, 0.05)), peak_per_item=16.0, startup_seconds=0.5)
FORM = Form({"y": 20, "x": 30}, np.dtype(">f4"), frozenset("yx"), frozenset("y"))
ENTRY = Entry(cost=COST, runs=2, work_items=10**6, work_seconds=0.5, budget_bytes=2**30)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "history.sqlite"


@pytest.mark.parametrize("entry", [ENTRY, Entry(form=FORM)])
def test_what_is_kept_is_found(path, entry):
    History(path).keep("key", entry)
    assert History(path).find("key") == entry
    assert History(path).find("another key") is None


def test_the_order_of_dimensions_is_kept(path):
    form = replace(FORM, lengths={"x": 30, "y": 20})
    History(path).keep("key", Entry(form=form))
    assert list(History(path).find("key").form.lengths) == ["x", "y"]


def test_the_last_one_counts(path):
    history = History(path)
    history.keep("key", ENTRY)
    history.keep("key", replace(ENTRY, runs=3))
    assert history.find("key").runs == 3


def test_what_is_forgotten_is_gone(path):
    history = History(path)
    history.keep("key", ENTRY)
    history.forget("key")
    assert history.find("key") is None


def test_looking_makes_no_file(path):
    History(path).find("key")
    History(path).forget("key")
    assert not path.parent.exists()


def test_what_was_not_used_for_longest_is_dropped(path, monkeypatch):
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    now = [0.0]
    history = History(path, clock=lambda: now[0])
    for key in "abc":
        now[0] += 2 * module.TOUCH_SECONDS
        history.keep(key, ENTRY)
    now[0] += 2 * module.TOUCH_SECONDS
    assert history.find("a") is not None
    now[0] += 2 * module.TOUCH_SECONDS
    history.keep("d", ENTRY)
    assert [key for key in "abcd" if history.find(key)] == ["a", "c", "d"]


@pytest.mark.parametrize(
    "cost",
    [
        replace(COST, peak_per_item=float("nan")),
        replace(COST, peak_base_bytes=-1.0),
        replace(COST, read_seconds_per_byte=float("inf")),
        replace(COST, points=((1000, 0.0),)),
        replace(COST, points=((1000, float("nan")),)),
        replace(COST, points=((1000, 0.1), (10, 0.1))),
        replace(COST, thread_slowdown=((0, 1.0),)),
    ],
)
def test_values_that_make_no_sense_are_neither_kept_nor_found(path, cost):
    history = History(path)
    history.keep("key", replace(ENTRY, cost=cost))
    assert history.find("key") is None
    history.keep("key", ENTRY)
    _overwrite(path, json.dumps({**json.loads(ENTRY.to_json()), "cost": cost.to_dict()}))
    assert history.find("key") is None


@pytest.mark.parametrize(
    "change",
    [
        ('"format": 1', '"format": 2'),
        ('"runs": 2', '"runs": -2'),
        ('"runs": 2', '"runs": "two"'),
        ('"runs": 2', '"unheard_of": 2'),
        ('"peak_per_item": 16.0', '"peak_per_item": NaN'),
        ('"peak_per_item": 16.0', '"peak_per_item": null'),
        ("{", "["),
    ],
)
def test_an_entry_that_cannot_be_understood_is_ignored(path, change):
    History(path).keep("key", ENTRY)
    assert change[0] in ENTRY.to_json()
    _overwrite(path, ENTRY.to_json().replace(*change))
    assert History(path).find("key") is None


def test_a_dtype_that_no_text_says_is_not_kept(path):
    record = np.dtype([("a", "f4"), ("b", "i2")])
    History(path).keep("key", Entry(form=replace(FORM, dtype=record)))
    assert History(path).find("key") is None


@pytest.mark.parametrize(
    "content", [b"this is no database" * 100, b"SQLite format 3\0" + b"?" * 99]
)
def test_a_corrupt_file_is_replaced(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    assert History(path).find("key") is None
    path.write_bytes(content)
    History(path).keep("key", ENTRY)
    assert History(path).find("key") == ENTRY


def test_damage_in_the_middle_of_the_file_is_survived(path):
    history = History(path)
    for number in range(200):
        history.keep(f"key {number}", ENTRY)
    damaged = bytearray(path.read_bytes())
    damaged[4096:] = b"\xff" * (len(damaged) - 4096)
    path.write_bytes(damaged)
    assert history.find("key 7") is None
    history.keep("key 7", ENTRY)
    assert history.find("key 7") == ENTRY


@pytest.mark.parametrize("statement", ["pragma user_version=99", "pragma application_id=5"])
def test_a_file_of_a_newer_version_or_another_program_is_left_alone(path, statement):
    History(path).keep("key", ENTRY)
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
    History(path).keep("key", replace(ENTRY, runs=7))
    History(path).forget("key")
    assert History(path).find("key") is None
    with closing(sqlite3.connect(path)) as db:
        assert '"runs": 2' in db.execute("select content from entry").fetchone()[0]


def test_a_database_of_another_program_is_left_alone(path):
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table theirs (a)")
    History(path).keep("key", ENTRY)
    assert History(path).find("key") is None
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("select name from sqlite_master").fetchall() == [("theirs",)]


def test_without_a_place_to_write_nothing_is_known(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "history.sqlite", tmp_path / "folder"):
        History(path).keep("key", ENTRY)
        History(path).forget("key")
        assert History(path).find("key") is None


def test_nobody_waits_for_a_writer_that_does_not_end(path, monkeypatch):
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.01)
    history = History(path)
    history.keep("key", ENTRY)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        history.keep("key", replace(ENTRY, runs=9))
        assert history.find("key") == ENTRY
        other.execute("rollback")
        other.execute("pragma locking_mode=exclusive")
        other.execute("delete from entry where key = 'none'")
        assert history.find("key") is None
    assert history.find("key") == ENTRY


@pytest.mark.parametrize("reason", ["database or disk is full", "disk I/O error"])
def test_an_error_of_the_disk_is_not_the_users_trouble(path, monkeypatch, reason):
    def fail(*_):
        raise sqlite3.OperationalError(reason)

    history = History(path)
    history.keep("key", ENTRY)
    monkeypatch.setattr(module, "_write", fail)
    history.keep("key", replace(ENTRY, runs=9))
    assert history.find("key") == ENTRY


HAMMER = """
import sys
from pathlib import Path
from barrow.model.cost import Cost
from barrow.probing.history import Entry, History
history = History(Path(sys.argv[1]))
for turn in range(100):
    key = f"key {(turn * 7 + int(sys.argv[2])) % 20}"
    history.keep(key, Entry(Cost(points=((1 + turn, 0.5),)), runs=turn))
    found = history.find(key)
    assert found is None or found.cost.points[0][1] == 0.5
    if turn % 10 == 0:
        history.forget(key)
history.keep(f"last {sys.argv[2]}", Entry(Cost(points=((1, 0.5),))))
print("done")
"""


def test_many_processes_may_use_it_at_once(path):
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", HAMMER, str(path), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    assert [process.communicate(timeout=60)[0] for process in crowd] == ["done\n"] * 4
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        assert 0 < db.execute("select count(*) from entry").fetchone()[0] <= 24


def test_many_threads_may_use_it_at_once(path):
    history = History(path)

    def work(number):
        history.keep(f"key {number % 5}", ENTRY)
        return history.find(f"key {number % 5}")

    with ThreadPoolExecutor(8) as pool:
        assert {entry for entry in pool.map(work, range(100)) if entry} == {ENTRY}


def _overwrite(path, content):
    with closing(sqlite3.connect(path)) as db:
        db.execute("update entry set content = ?", (content,))
        db.commit()
