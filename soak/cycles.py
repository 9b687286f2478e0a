"""Do local clusters that come and go leave anything behind?

Start, work, stop, again and again in one process. Afterwards there must be no process, no
port, no temporary file and no open file more than after the first two.
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

import barrow

CYCLES = 20
SETTLE_SECONDS = 10.0

Left = dict[str, set[object]]


def list_left() -> Left:
    """Return all that a cluster may leave behind."""
    own = psutil.Process()
    listening = (c.laddr for c in own.net_connections() if c.status == psutil.CONN_LISTEN)
    caches = (Path(tempfile.gettempdir()), Path(os.environ.get("BARROW_CACHE", "/nowhere")))
    return {
        "processes": {child.pid for child in own.children(recursive=True)},
        "ports": set(listening),
        "temporary files": set(caches[0].glob("barrow-*")),
        "open clusters": set(caches[1].glob("open-clusters/*")),
        "shared memory": set(Path("/dev/shm").glob(f"*{os.getpid()}*")),
    }


def run_cycles(count: int, folder: Path) -> list[int]:
    """Start, work and stop so many times; return how many files were open after each."""
    data = np.arange(60_000.0).reshape(60, 1000)
    tempfile.tempdir = str(folder)
    try:
        before, n_open = list_left(), []
        for _ in range(count):
            with barrow.cluster("local", workers=2, threads=1, memory="500MB") as cluster:
                out = barrow.map(np.negative, data, cluster=cluster, quiet=True)
                assert np.array_equal(out, -data), "the result is wrong"
            del out
            n_open.append(psutil.Process().num_fds())
        # Dask closes its sockets a moment after it has said so.
        last = time.monotonic() + SETTLE_SECONDS
        while more := _compare(before, list_left()):
            assert time.monotonic() < last, f"left behind: {more}"
            time.sleep(0.1)
    finally:
        tempfile.tempdir = None
    assert n_open[-1] <= n_open[min(1, count - 1)] + 3, f"open files pile up: {n_open}"
    return n_open


def _compare(before: Left, after: Left) -> Left:
    return {what: left for what in after if (left := after[what] - before[what])}


def main() -> int:
    """Run all cycles; return 1 if something was left."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            n_open = run_cycles(CYCLES, Path(folder))
        except AssertionError as error:
            print(f"    FAILED: {error}")
            return 1
    seconds = (time.monotonic() - began) / CYCLES
    print(f"    {CYCLES} cycles of {seconds:.1f} s left nothing; open files: {n_open}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
