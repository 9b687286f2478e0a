"""What happens to functions whose memory is not what it looked like when they were tried out?

Each is planned as a function that takes little and then takes more: on some chunks only,
depending on the values, in native code that checks nothing, in memory that no limit of the
kernel sees, more with every chunk, or more than there is however small the chunk. On two
workers of 1 GB, looked at from outside every 10 ms; those that can never fit on every engine.
A run must end with the right result, or within seconds with one error in plain words.
"""

import os
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import barrow
from barrow.errors import BarrowError
from barrow.model.applied import apply_step
from barrow.model.plan import Plan
from benchmarks.measure import describe_machine, write_json
from soak.faults import RESULTS
from soak.watching import Watcher

MB = 10**6
FRAMES, SIDE, FRAMES_PER_CHUNK = 512, 128, 64
WORKERS, MEMORY_BYTES = 2, 1000 * MB
# A chunk that takes this does not fit a worker of 1 GB; half of it does.
TOO_MUCH_BYTES = 750 * MB
FRAME_BYTES = TOO_MUCH_BYTES // FRAMES_PER_CHUNK
NEVER_BYTES = 10_000 * MB
# An error that takes longer than this to come is no help.
MOST_SECONDS = 30.0


def make_data() -> np.ndarray:
    """Return frames of whole numbers: small ones, but for two chunks."""
    data = np.random.default_rng(0).integers(0, 8, (FRAMES, SIDE, SIDE)).astype("f8")
    for chunk in (2, 5):
        frames = slice(chunk * FRAMES_PER_CHUNK, (chunk + 1) * FRAMES_PER_CHUNK)
        data[frames] += np.arange(SIDE * SIDE).reshape(SIDE, SIDE) % 1000
    return data


def behave(x):
    return x + 1


def hungry_on_some(x):
    """Take much where the values are large."""
    if x.max() > 500:
        np.ones(len(x) * FRAME_BYTES * x[0].size // SIDE**2, "u1")
    return x + 1


def hungry_by_value(x):
    """Repeat every item as often as its value says."""
    return x + 1 + 0 * np.repeat(x.astype("f4"), x.astype(int).ravel() // 3).sum()


def hungry_by_variety(x):
    """Compare every item with every different value."""
    return x + (x[..., None] == np.unique(x)).any(axis=-1)


def unchecked(x):
    """Use memory in native code without asking whether it was given."""
    _touch_natively(len(x) * FRAME_BYTES * x[0].size // SIDE**2)
    return x + 1


def shared(x):
    """Take memory that counts for no limit of the kernel."""
    import mmap

    with mmap.mmap(-1, 3 * len(x) * FRAME_BYTES * x[0].size // SIDE**2 // 2) as pages:
        block = b"1" * 2**20
        while pages.tell() + len(block) <= len(pages):
            pages.write(block)
    return x + 1


def leak(x):
    """Keep 50 MB for ever."""
    sys.__dict__.setdefault("_kept_by_soak", []).append(np.ones(50 * MB, "u1"))
    return x + 1


def never(x):
    return x + np.empty(NEVER_BYTES, "u1")[0]


def never_unchecked(x):
    _touch_natively(NEVER_BYTES)
    return x + 1


def _touch_natively(size: int) -> None:
    import ctypes

    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    pages = libc.malloc(size)
    libc.memset(pages, 1, size)  # ends the process if there are none
    libc.free(pages)


@dataclass(frozen=True)
class Lie:
    """A function, where it runs, and whether it can end well."""

    func: Callable[..., Any]
    engine: str = "dask"
    frames: int = FRAMES_PER_CHUNK
    ends_well: bool = True

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return f"{self.func.__name__}, {'workers' if self.engine == 'dask' else self.engine}"


LIES = [
    Lie(hungry_on_some),
    Lie(hungry_on_some, "threads"),
    Lie(hungry_by_value),
    Lie(hungry_by_variety),
    Lie(unchecked),
    Lie(shared),
    Lie(leak, frames=16),
    Lie(never, ends_well=False),
    Lie(never, "inline", ends_well=False),
    Lie(never, "threads", ends_well=False),
    Lie(never, "processes", ends_well=False),
    Lie(never_unchecked, ends_well=False),
]


def plan_lie(lie: Lie, data: np.ndarray) -> Plan:
    """Return a plan that believes the function to be one that behaves."""
    plan = barrow.plan(behave, data, quiet=True, memory=2 * MEMORY_BYTES, name=lie.func.__name__)
    apply = plan.target.read
    return replace(
        plan,
        target=apply_step(replace(apply.step, func=lie.func), apply.inputs, apply.form),
        engine=lie.engine,
        workers=WORKERS if lie.engine in ("dask", "processes") else 1,
        threads=WORKERS if lie.engine == "threads" else 1,
        chunks={"dim_0": lie.frames, "dim_1": SIDE, "dim_2": SIDE},
        strides={},
        stored_chunks={},
        budget_bytes=plan.budget_bytes if lie.engine == "dask" else 565 * 2**20,
    )


def tell(lie: Lie, data: np.ndarray, folder: Path) -> dict[str, Any]:
    """Run one function and return what happened."""
    found: dict[str, Any] = {"name": lie.name, "events": {}, "error": "", "is_right": False}
    with (
        barrow.cluster("local", workers=WORKERS, threads=1, memory=MEMORY_BYTES) as cluster,
        Watcher(os.getpid()) as watcher,
    ):
        plan = plan_lie(lie, data)
        began = time.perf_counter()
        try:
            run = barrow.run(plan, folder=folder, quiet=True)
            found["is_right"] = bool(np.array_equal(run.result, data + 1))
        except BarrowError as error:
            found["error"] = f"{type(error).__name__}: {error}"
        found["seconds"] = time.perf_counter() - began
        found["exits"] = Counter(str(end.code) for end in cluster.exits)
    found.update(watcher.facts())
    if (folder / "record.sqlite").exists():
        with sqlite3.connect(folder / "record.sqlite") as db:
            found["events"] = Counter(kind for (kind,) in db.execute("select kind from event"))
    found["is_good"] = found["is_right"] if lie.ends_well else bool(found["error"])
    found["is_good"] = found["is_good"] and (lie.ends_well or found["seconds"] < MOST_SECONDS)
    return found


def main() -> int:
    """Tell all lies and keep what happened."""
    os.environ["BARROW_HISTORY"] = "off"
    data = make_data()
    rows = []
    print(f"{'':28} {'s':>6} {'worst MB':>9}  what happened")
    with tempfile.TemporaryDirectory(prefix="barrow-lies-") as name:
        for number, lie in enumerate(LIES):
            row = tell(lie, data, Path(name) / str(number))
            rows.append(row)
            events = ", ".join(f"{count} {kind}" for kind, count in row["events"].items())
            codes = ", ".join(f"{count} exit {code}" for code, count in row["exits"].items())
            happened = "; ".join(filter(None, (events, codes)))
            verdict = "right" if row["is_right"] else row["error"].partition("\n")[0]
            print(
                f"{lie.name:28} {row['seconds']:6.1f} {row['worst_worker_bytes'] / MB:9.0f}  "
                f"{'' if row['is_good'] else 'WRONG '}{verdict}; {happened}",
                flush=True,
            )
    facts = {"question": __doc__.splitlines()[0], **describe_machine()}
    write_json("lies", {**facts, "lies": rows}, RESULTS)
    return 0 if all(row["is_good"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
