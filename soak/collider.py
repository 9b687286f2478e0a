"""Is what a run over events leaves out exact where workers die and memory is short?

python soak/collider.py
"""

import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import awkward as ak
import numpy as np

import barrow
from barrow import collider

EVENTS, CLUSTER = 50_000, 5000
DEADLY = 32_100


def numbers_of(events: Any) -> list[int]:
    return [int(number) for number in ak.to_numpy(events.event)]


def die_at_one_event(path: str, cluster: Any) -> None:
    """Whatever worker gets a certain event dies: its chunk is left out, and nothing else."""
    home = os.getpid()

    def deadly(events: Any) -> list[int]:
        if os.getpid() != home and ak.any(events.event == DEADLY):
            os.kill(os.getpid(), signal.SIGKILL)
        return numbers_of(events)

    run = collider.run(deadly, path, chunksize=CLUSTER, cluster=cluster, on_error="skip")
    first = DEADLY // CLUSTER * CLUSTER
    assert [(s.start, s.stop) for s in run.skipped] == [(first, first + CLUSTER)], run.skipped
    rest = [n for n in range(EVENTS) if not first <= n < first + CLUSTER]
    assert run.output == rest


def die_once(path: str, cluster: Any) -> None:
    """A worker that dies once costs nothing."""
    home, mark = os.getpid(), f"{path}.mark"

    def deadly(events: Any) -> list[int]:
        if os.getpid() != home and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return numbers_of(events)

    run = collider.run(deadly, path, chunksize=CLUSTER, cluster=cluster)
    assert run.output == [*range(EVENTS)]
    assert run.skipped == ()


def hold_much(path: str, cluster: Any) -> None:
    """An accumulator of 80 MB for each chunk adds up in workers of 600 MB."""

    def heavy(events: Any) -> np.ndarray:
        total = np.zeros(10_000_000)
        total[: len(events)] += 1
        return total

    run = collider.run(heavy, path, chunksize=CLUSTER, cluster=cluster)
    assert run.output.sum() == EVENTS
    assert run.skipped == ()


CASES: tuple[Callable[[str, Any], None], ...] = (die_once, die_at_one_event, hold_much)


def main() -> int:
    warnings.simplefilter("ignore", barrow.errors.SkippedWarning)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = str(collider.write_nanoaod(f"{folder}/events.root", EVENTS, cluster=CLUSTER))
        for case in CASES:
            with barrow.cluster("local", workers=2, threads=1, memory="600MB") as cluster:
                try:
                    case(path, cluster)
                    print(f"{case.__name__}: as it should be", flush=True)
                except Exception as error:
                    failed += 1
                    print(f"{case.__name__}: {type(error).__name__}: {error}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
