"""The same calls, unchanged, wherever they run. With jobs of SLURM: see tests/slurm."""

import os
import subprocess
import sys
from pathlib import Path

import barrow

SCRIPT = Path(__file__).parents[1] / "three_calls.py"
SOURCE = Path(barrow.__file__).parents[1]


def test_the_same_calls_give_the_same_bits_in_every_setting(tmp_path):
    environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path], env=environ, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "no cluster: inline, True",
        "cluster=False: inline, True",
        "LocalCluster: dask, True",
        "address: dask, True",
        "threads: dask, True",
    ]
