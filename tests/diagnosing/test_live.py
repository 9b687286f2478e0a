"""The doctor beside a program: each finding is told once, and nothing is loaded in vain."""

import subprocess
import sys

from barrow.diagnosing.live import Live
from barrow.recording.reading import Record
from barrow.recording.watching import watch_command

STALLED = {"since": 1.0, "waiting": 5, "workers": [], "n_workers": 0}

LOOK = """
import sys
from barrow.diagnosing.live import Live

class Nothing:
    facts = {}
    def columns(self, name):
        return {"kind": ["joined", "graph"]}

Live(Nothing, print).look()
assert "pandas" not in sys.modules, "pandas"
"""


def test_a_finding_is_told_once_and_again_when_it_is_graver(made, event):
    told, events = [], []
    running = {"status": "running", "ended": None}
    live = Live(lambda: made(facts=running, event=events), told.append)
    for seconds in (8.0, 9.0, 40.0, 60.0):
        events.append(event("stalled", time=1 + seconds, seconds=seconds, **STALLED))
        live.look()
    assert [(found.code, found.severity) for found in told] == [
        ("WRK04", "note"),
        ("WRK04", "warning"),
    ]


def test_a_program_with_which_nothing_is_wrong_does_not_get_pandas():
    subprocess.run([sys.executable, "-c", LOOK], check=True)


def test_whoever_attends_a_program_can_add_to_its_record(tmp_path, made, event):
    (tmp_path / "program.py").write_text("pass\n")
    record = made(
        facts={"status": "running"},
        event=[event("stalled", time=60.0, seconds=59.0, **STALLED)],
    )

    def attend(sender):
        def tell(finding):
            sender.put("event", 1.0, "finding", finding.claim, "{}")
            sender.flush()

        live = Live(lambda: record, tell, look_seconds=60)
        live.look()
        return live

    folder = tmp_path / "run"
    assert watch_command([str(tmp_path / "program.py")], folder, attend=attend) == 0
    events = Record(folder / "record.sqlite").columns("event")
    assert "finding" in events["kind"]
    assert "5 tasks waited for 59.0 s, and no worker came." in events["message"]
