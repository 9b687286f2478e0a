"""A run that is killed goes on where it was, and ends with the same result."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from barrow import miniscope
from barrow.fields.miniscope.pipeline import STEPS

CALL = """
import os, signal, sys
import numpy as np
from barrow import miniscope
from barrow.fields.miniscope import pipeline

def die(self, name, key, compute, was=pipeline.Pipeline._step):
    def killed():
        if name == sys.argv[3]:
            os.kill(os.getpid(), signal.SIGKILL)
        return compute()
    return was(self, name, key, killed)

pipeline.Pipeline._step = die
miniscope.run(np.load(sys.argv[1]), to=sys.argv[2], cluster=False, quiet=True)
"""


@pytest.fixture(scope="module")
def movie(simulated, tmp_path_factory):
    path = tmp_path_factory.mktemp("movie") / "movie.npy"
    np.save(path, simulated[0][:256])
    return path


@pytest.mark.parametrize("step", ["second_spatial"])
def test_a_run_killed_in_a_step_redoes_that_and_what_follows(movie, tmp_path, step):
    script = tmp_path / "run.py"
    script.write_text(CALL)
    command = [sys.executable, str(script), str(movie), str(tmp_path / "out"), step]
    source = str(Path(miniscope.__file__).parents[3])
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": source}, check=False)
    assert ended.returncode == -signal.SIGKILL

    again = miniscope.run(np.load(movie), to=tmp_path / "out", cluster=False, quiet=True)
    assert again.redone == STEPS[STEPS.index(step) :]
    whole = miniscope.run(np.load(movie), to=tmp_path / "whole", cluster=False, quiet=True)
    for name in ("A", "C", "S", "motion"):
        # Sums over frames are added up as they were planned, which may differ.
        right = np.asarray(getattr(whole, name))
        np.testing.assert_allclose(getattr(again, name), right, atol=1e-4 * np.abs(right).max())


def test_a_damaged_checkpoint_is_made_again(simulated, tmp_path):
    movie = simulated[0][:150]
    miniscope.run(movie, to=tmp_path, cluster=False, quiet=True)
    place = tmp_path / "steps" / "first_spatial.npz"
    place.write_bytes(place.read_bytes()[:100])
    again = miniscope.run(movie, to=tmp_path, cluster=False, quiet=True)
    assert again.redone == ("first_spatial",)
