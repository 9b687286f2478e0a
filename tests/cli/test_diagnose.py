"""``barrow diagnose`` and ``barrow doctor``."""

import json
import sqlite3

import numpy as np
import pytest
from click.testing import CliRunner

import barrow
from barrow.cli.main import main


@pytest.fixture
def folder(tmp_path):
    run = barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0)), folder=tmp_path / "run")
    return run.folder


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_a_healthy_run_ends_with_status_0(folder):
    done = invoke("diagnose", folder)
    assert (done.exit_code, done.output[:16]) == (0, "Nothing is wrong")


@pytest.mark.parametrize(
    ("said", "status"),
    [("3 jobs pending", 0), ("it ran out of its walltime", 3), ("SLURM rejected the job", 4)],
)
def test_the_exit_status_says_how_grave_it_is(folder, said, status):
    with sqlite3.connect(folder / "record.sqlite") as db:
        began = float(db.execute("select value from run where name = 'began'").fetchone()[0])
        db.execute("insert into event values (?, 'job', ?, '{}')", (began, said))
    done = invoke("diagnose", folder, "--json")
    assert done.exit_code == status
    assert json.loads(done.output)["findings"][0]["code"].startswith("SLM")


def test_the_doctor_looks_at_an_installation():
    done = invoke("doctor")
    assert done.exit_code == 0, done.output
    assert all(word in done.output for word in ("versions", "memory", "scratch", "SLURM"))


def test_a_dear_halo_is_noted_in_a_run_of_barrows_own(tmp_path):
    def blur(block):
        total = block.copy()
        for shift in range(1, 200):
            total += np.roll(block, shift % 7, axis=0)
        return total

    plan = barrow.plan(barrow.Step(blur, halo={"dim_0": 40}), np.ones((600, 2000)))
    run = barrow.run(plan.with_chunks(dim_0=20), folder=tmp_path / "run")
    assert {finding.code for finding in run.findings} <= {"CHK05"}
