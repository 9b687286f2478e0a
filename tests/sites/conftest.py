import os
import subprocess
import sys
from pathlib import Path

import pytest

import barrow.sites.local

SOURCE = Path(barrow.sites.local.__file__).parents[2]


@pytest.fixture
def python_environment():
    """Environment in which a new Python finds barrow."""
    return {**os.environ, "PYTHONPATH": str(SOURCE)}


@pytest.fixture
def run_python(python_environment, tmp_path):
    """Run Python in an empty folder and return the finished process."""

    def run(*arguments, environ=None):
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env={**python_environment, **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
