"""Measure the peak memory of a task exactly, in a clean process.

``python -m barrow.probing.child`` reads tasks from its standard input and writes
what each needed to its standard output. In a process that has done nothing else,
and that gives freed memory back at once, the high-water mark that the kernel
keeps is exact; a warm process reuses what it has freed and shows too little.
"""

import gc
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import cloudpickle
import numpy as np

from barrow.model.applied import evaluate, leaf_ranges, leaves, rebind
from barrow.model.source import Reader, Source
from barrow.shared import Ranges

TIMEOUT_SECONDS = 20.0

_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def measure_peaks(target: Source, blocks: Sequence[Ranges]) -> list[int] | None:
    """Return the bytes that reading each block needs at most; None if that cannot be measured."""
    if not os.path.exists("/proc/self/clear_refs"):
        return None
    try:
        request = cloudpickle.dumps([(_narrowed(target, block), block) for block in blocks])
    except Exception:
        return None  # what cannot travel is measured here, less exactly
    environment = {
        **os.environ,
        **dict.fromkeys(_ONE_THREAD, "1"),
        # Without this the first large array that is freed raises the threshold for good.
        "MALLOC_TRIM_THRESHOLD_": "65536",
        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "barrow.probing.child"],
            input=request,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            env=environment,
            check=True,
        )
        peaks: list[int] = json.loads(done.stdout)
    except (subprocess.SubprocessError, OSError, ValueError):
        return None
    return peaks


def _narrowed(target: Source, block: Ranges) -> Source:
    """Return the chain of steps with no more data than one block needs."""
    pairs = zip(leaves(target), leaf_ranges(target, block), strict=True)
    return rebind(target, (Fresh(leaf.read.only(part)) for leaf, part in pairs))


@dataclass(frozen=True)
class Fresh(Reader):
    """Read into new memory, as a worker does, also what came along with the request."""

    read: Reader

    def __call__(self, ranges: Ranges) -> np.ndarray:
        block = self.read(ranges)
        return block if block.flags.owndata else block.copy()

    def only(self, ranges: Ranges) -> "Fresh":
        """Return it with no more data than one block needs."""
        return Fresh(self.read.only(ranges))


def main() -> None:
    """Measure the tasks that come in on standard input."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the function prints is not part of the answer
    tasks = pickle.load(sys.stdin.buffer)
    # Imports and compilation are not part of a task, nor are the buffers that BLAS takes for
    # good when it first meets a large one: the last is the largest.
    evaluate(*tasks[-1])
    with answer:
        json.dump([_measure(target, block) for target, block in tasks], answer)


def _measure(target: Source, block: Ranges) -> int:
    gc.collect()
    before = _read_status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    kept = evaluate(target, block)
    peak = _read_status("VmHWM")
    del kept
    return max(1, peak - before)


def _read_status(name: str) -> int:
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(name))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
