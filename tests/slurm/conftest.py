"""A real SLURM for the tests: four nodes on loopback, started when first needed."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MOST_SECONDS = 60.0


class RealSlurm:
    """What tests ask of SLURM beside what barrow asks."""

    def run(self, *command, text=None):
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def list_jobs(self, state="all"):
        """Return the numbers of all jobs in the queue."""
        states = "pending,running,completing" if state == "all" else state
        lines = self.run("squeue", "--noheader", f"--states={states}", "--format=%A")
        return [int(line) for line in lines.split()]

    def cancel(self, *jobs):
        self.run("scancel", *map(str, jobs))

    def fill(self, partition, megabytes, folder):
        """Submit a job that takes memory and sleeps."""
        script = "#!/bin/sh\nexec sleep 300\n"
        options = (f"--partition={partition}", f"--mem={megabytes}M", f"--output={folder}/fill.log")
        return int(self.run("sbatch", "--parsable", *options, text=script))

    def find_nodes(self, *jobs):
        """Return on which node each job runs."""
        numbers = ",".join(map(str, jobs))
        return self.run("squeue", "--noheader", f"--jobs={numbers}", "--format=%N").split()

    def let_fail(self, node):
        """Let a node fail. It comes back by itself, as its daemon is still there."""
        self.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=tried")

    def wait_until(self, condition, seconds=MOST_SECONDS):
        """Wait for something, and return whether it came about."""
        last = time.monotonic() + seconds
        while not (answer := condition()):
            if time.monotonic() > last:
                return False
            time.sleep(0.1)
        return answer


def start_slurm(folder):
    """Start SLURM, after installing it where that can be done; return why not otherwise."""
    command = [HERE / "slurm-up", folder]
    if os.getuid() == 0 and shutil.which("apt-get"):
        command.insert(1, "--install")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or ["no reason given"])[-1]


@pytest.fixture(scope="session")
def slurm_daemons():
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        reason = start_slurm(folder)
        if reason is not None:
            pytest.skip(f"SLURM could not be started, so it is not tested: {reason}")
        yield folder
    finally:
        subprocess.run([HERE / "slurm-down", folder], capture_output=True, timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def slurm(slurm_daemons, monkeypatch):
    """SLURM with an empty queue, which is empty again afterwards."""
    monkeypatch.setenv("SLURM_CONF", str(slurm_daemons / "slurm.conf"))
    slurm = RealSlurm()
    yield slurm
    left = slurm.list_jobs()
    if left:
        slurm.cancel(*left)
        assert slurm.wait_until(lambda: not slurm.list_jobs())
