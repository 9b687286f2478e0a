import json
import pickle

import pytest
from click.testing import CliRunner

pytest.importorskip("uproot")

from barrow.cli.main import main

PROCESSOR = """
import awkward as ak

class Counting:
    def process(self, events):
        return {events.metadata["dataset"]: int(ak.sum(ak.num(events.Muon) == 2))}
"""


def invoke(*arguments):
    return CliRunner().invoke(main, ["collider", *map(str, arguments)])


def test_a_processor_in_a_file_runs_over_a_fileset_in_json(tmp_path):
    events, to = tmp_path / "events.root", tmp_path / "out.pkl"
    assert invoke("make", events, 300).exit_code == 0
    (tmp_path / "counting.py").write_text(PROCESSOR)
    (tmp_path / "fileset.json").write_text(json.dumps({"zmumu": [str(events)]}))
    done = invoke("run", f"{tmp_path}/counting.py:Counting", tmp_path / "fileset.json", "-o", to)
    assert done.exit_code == 0, done.output
    assert "300 of 300 events" in done.output
    assert pickle.loads(to.read_bytes())["zmumu"] > 50


def test_a_missing_file_is_one_sentence(tmp_path):
    (tmp_path / "counting.py").write_text(PROCESSOR)
    done = invoke("run", f"{tmp_path}/counting.py:Counting", "gone.root", "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "gone.root cannot be opened" in done.output
    assert "Traceback" not in done.output
