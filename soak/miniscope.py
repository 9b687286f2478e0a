"""Does a miniscope run that is killed in any of its steps go on, and end with the same result?

A process is killed with signal 9 in each step in turn: when all of the step is computed and
nothing of it is kept, which is the worst moment; and in the movie's step, which is kept chunk
by chunk, when some of the chunks are there. The run is then taken up. Its result must be that
of a run that was never killed, and steps and chunks that were done must not be done again.

    python -m soak.miniscope
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from barrow import miniscope
from barrow.fields.miniscope.pipeline import STEPS

FRAMES = 128
"""Of a chunk: the movie's step is to be killed between two of them."""
MOST_SECONDS = 600
SAME = 1e-4

VICTIM = """
import os, signal, sys, threading, time
from pathlib import Path
from barrow.fields.miniscope.checkpoints import Checkpoints
from soak.miniscope import list_chunks, take_up

movie, to, step, frames = sys.argv[1:]

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def arrays(self, name, key, compute, was=Checkpoints.arrays):
    return was(self, name, key, lambda: (compute(), die()) if name == step else compute())

def watch():
    while len(list_chunks(Path(to))) < 2:
        time.sleep(0.002)  # the process ends, at the latest when the run is over
    die()

Checkpoints.arrays = arrays
if step == "movie":
    threading.Thread(target=watch, daemon=True).start()
take_up(Path(movie), Path(to), int(frames) or None)
"""


def list_chunks(to: Path) -> dict[str, int]:
    """Return the stored chunks of the movie, finished or not, and when each was written."""
    found = {}
    for place in (to / "steps").glob("*movie.zarr*"):
        for path in place.rglob("*"):
            parts = path.relative_to(place).parts
            if "c" in parts and path.is_file() and not path.name.startswith("."):
                found["/".join(parts[parts.index("c") :])] = path.stat().st_mtime_ns
    return found


def kill_in(step: str, movie: Path, to: Path, frames: int | None) -> None:
    """Run until a step, and die there."""
    root = Path(__file__).parents[1]
    paths = os.pathsep.join([str(root), str(root / "src")])
    ended = subprocess.run(
        [sys.executable, "-c", VICTIM, str(movie), str(to), step, str(frames or 0)],
        env={**os.environ, "PYTHONPATH": paths},
        timeout=MOST_SECONDS,
        check=False,
    )
    if ended.returncode != -signal.SIGKILL:
        raise RuntimeError(f"{step}: the process was not killed but ended by {ended.returncode}.")


def take_up(movie: Path, to: Path, frames: int | None = FRAMES) -> miniscope.Result:
    """Run again what was killed, or for the first time."""
    chunks = {"frame": frames} if frames else None
    return miniscope.run(np.load(movie), to=to, cluster=False, chunks=chunks, quiet=True)


def list_faults(
    step: str, movie: Path, to: Path, right: miniscope.Result, frames: int | None = FRAMES
) -> list[str]:
    """Kill a run in a step, take it up, and return what is not as it should be."""
    kill_in(step, movie, to, frames)
    before = list_chunks(to)
    again = take_up(movie, to, frames)
    after = list_chunks(to)
    faults = [
        f"{name} differs" for name in ("A", "C", "S", "motion") if not _is_same(name, again, right)
    ]
    if repeated := set(STEPS[: STEPS.index(step)]) & set(again.redone):
        faults.append(f"{', '.join(sorted(repeated))} had been done, and were done again")
    if rewritten := [chunk for chunk, when in before.items() if after.get(chunk) != when]:
        faults.append(f"{len(rewritten)} of {len(before)} chunks were written again")
    return faults


def _is_same(name: str, one: miniscope.Result, other: miniscope.Result) -> bool:
    a, b = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
    return a.shape == b.shape and np.allclose(a, b, rtol=0, atol=SAME * np.abs(b).max(initial=1))


def main(steps: Iterable[str] = STEPS) -> int:
    source, _ = miniscope.simulate(frames=640, height=128, width=128, cells=12, seed=3)
    bad = 0
    with tempfile.TemporaryDirectory() as place:
        movie = Path(place) / "movie.npy"
        np.save(movie, source.read(source.everything))
        right = take_up(movie, Path(place) / "right")
        for step in steps:
            faults = list_faults(step, movie, Path(place) / step, right)
            print(f"killed in {step}: {'; '.join(faults) or 'the same result'}", flush=True)
            bad += bool(faults)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or STEPS))
