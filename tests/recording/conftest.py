"""What the tests of recording share: programs of a user, run as he runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

import barrow

# Not the console script: it is missing where barrow is on the path but not installed.
BARROW = [sys.executable, "-P", "-c", "from barrow.cli.main import main; main(prog_name='barrow')"]


@pytest.fixture
def program(tmp_path):
    """Write a script and return its path."""

    def write(text: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def watch(tmp_path):
    """Run a script by ``barrow watch``; return how it ended, and its record."""

    def run(script, *arguments, status=0):
        folder = tmp_path / "watched"
        command = [*BARROW, "watch", "--folder", folder, script, *arguments]
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == status, done.stderr
        return done, barrow.record(folder)

    return run


@pytest.fixture
def start_watch(tmp_path):
    """Start ``barrow watch`` and return its process and the folder of its record."""

    def start(script):
        folder = tmp_path / "watched"
        command = [*BARROW, "watch", "--folder", folder, script]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=pipe,
            stderr=pipe,
            text=True,
            cwd=tmp_path,
            preexec_fn=_hear_interrupts,
        )
        return process, folder

    return start


def _hear_interrupts():
    # A shell that runs tests in the background has them ignored.
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
