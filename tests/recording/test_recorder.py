"""What the recorder takes in when a program ends before all that it has to say has come."""

import os
import subprocess
import sys

import pytest

from barrow.recording.reading import Record
from barrow.recording.recorder import Recorder, open_listener
from barrow.recording.sending import Sender


@pytest.fixture
def record_nothing(tmp_path):
    """Record a program that is over already, with what is on its way to the recorder."""

    def run(sender_of):
        listener = open_listener(str(tmp_path))
        recorder = Recorder(tmp_path, listener, os.getpid())
        sender = sender_of(str(tmp_path))
        recorder.run(lambda: True)
        recorder.close()
        sender.close()
        return Record(tmp_path / "record.sqlite")

    return run


@pytest.fixture
def stranger():
    """A process that is not a child of the program: its parent has ended."""
    start = "from subprocess import *; print(Popen(['sleep', '60'], stdout=DEVNULL).pid)"
    pid = int(subprocess.check_output([sys.executable, "-c", start]))
    yield pid
    os.kill(pid, 9)


def test_a_worker_that_is_made_known_at_the_very_end_is_sampled(record_nothing, stranger):
    def say_hello(place):
        sender = Sender(place)
        sender.put("hello", {"pid": stranger, "kind": "worker", "address": "tcp://127.0.0.1:1"})
        sender.flush()
        return sender

    record = record_nothing(say_hello)
    [name] = record.query("select name from process where kind = 'worker'")["name"]
    assert name in set(record.table("sample")["process"])


def test_rows_of_a_scheduler_that_outlives_the_program_are_waited_for(record_nothing):
    def say_it_late(place):
        sender = Sender(place)
        sender.put("fact", "first", "said at once")
        sender.flush()
        sender.put("fact", "last", "said by its thread, later")
        return sender

    assert record_nothing(say_it_late).facts["last"] == "said by its thread, later"
