"""What the tests of the command line share."""

import signal
import subprocess
import sys

import numpy as np
import pytest
import zarr

# Not the console script: it is missing where barrow is on the path but not installed.
BARROW = [sys.executable, "-P", "-c", "from barrow.cli.main import main; main(prog_name='barrow')"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with data and functions of a user."""
    monkeypatch.chdir(tmp_path)
    image = np.random.default_rng(0).random((3, 40, 50))
    np.save("image.npy", image)
    array = zarr.create_array("image.zarr", data=image, dimension_names=["c", "y", "x"])
    assert array.shape == image.shape
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "import beside\n"
        "def scale(x, factor=2.0):\n"
        "    return x * factor + beside.OFFSET\n"
        "def add(x, y):\n"
        "    return x + y\n"
        "def smooth(x):\n"
        "    p = np.pad(x, ((0, 0), (1, 1), (0, 0)), mode='symmetric')\n"
        "    return p[:, :-2] + p[:, 1:-1] + p[:, 2:]\n"
        "def broken(x):\n"
        "    raise RuntimeError('no such cell')\n"
        "def refuse_first(x):\n"
        "    if x.shape == (1, 40, 50) and x[0, 0, 0] == 0.6369616873214543:\n"
        "        raise ValueError('not this one')\n"
        "    return x\n"
        "def endless(x):\n"
        "    if x.shape == (3, 40, 50):\n"
        "        print('began', flush=True)\n"
        "        import time\n"
        "        while True: time.sleep(0.01)\n"
        "    return x\n"
    )
    (tmp_path / "beside.py").write_text("OFFSET = 1.0\n")
    return tmp_path


@pytest.fixture
def run_barrow(folder):
    """Run the command in a process of its own, as a user does."""

    def run(*arguments, status=0, cwd=folder):
        command = [*BARROW, *map(str, arguments)]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        return done

    return run


@pytest.fixture
def start_barrow(folder):
    """Start the command and return its process."""
    return lambda *arguments: _start([*BARROW, *map(str, arguments)], folder)


@pytest.fixture
def start_python(folder):
    """Start a script and return its process."""
    return lambda *arguments: _start([sys.executable, *arguments], folder)


def _start(command, folder):
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, stdout=pipe, stderr=pipe, text=True, preexec_fn=_hear_interrupts
    )


def _hear_interrupts():
    # A shell that runs tests in the background has them ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
