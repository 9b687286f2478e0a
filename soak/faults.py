"""Does a run end with the same result, whatever happens to its workers and to itself?

Runs of 30 to 100 chunks on two worker processes of 1 GB, 20 to 100 ms a chunk, from a Zarr
store or a .npy file to a store, into memory or into a sum. While they run, workers are
killed, stopped, sent away or cut off, the client is killed and the same call made again, or
the function takes five times the memory that it showed. Every run can be done again by its
number: ``python -m soak.faults --only 17``.

For each run: is its result, bit for bit, the one of an undisturbed run? How many chunks were
begun again, and how many were in flight? In flight is what had been handed to the engine and
not come back at the moment of the fault; when the client is killed, also what had come back
and was not yet in the ledger, which is written twice a second.
"""

import argparse
import hashlib
import json
import os
import queue
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import zarr

import barrow
from barrow.running.fold import Fold
from benchmarks.measure import describe_machine, write_json
from soak import work
from soak.work import FRAMES_PER_CHUNK, Book

RESULTS = Path(__file__).parent / "results"
ANSWER_SECONDS = 90.0
POLL_SECONDS = 0.002
LENGTHS = (120, 240, 400)
# So many seconds of all chunks together, at most.
MOST_WORK_SECONDS = 5.0


@dataclass(frozen=True)
class Fault:
    """Something that happens to a run."""

    what: str
    after: int
    """Calls that have begun by then."""
    delay_seconds: float
    stop_seconds: float = 0.0


@dataclass(frozen=True)
class Case:
    """One run and what happens to it; follows from its number alone."""

    number: int
    kind: str
    frames: int
    source: str
    sink: str
    halo: int
    seconds: float
    hunger: str
    faults: tuple[Fault, ...]

    @property
    def func(self) -> str:
        """Which function runs."""
        if self.sink != "reduce":
            return "smooth"
        # Where chunks are split, only exact sums are the same in any order.
        return "add_up" if self.hunger == "none" else "count_up"

    @property
    def n_chunks(self) -> int:
        """How many chunks it has."""
        return self.frames // FRAMES_PER_CHUNK


def _faults(rng: random.Random, n_chunks: int, whats: Iterable[str]) -> tuple[Fault, ...]:
    """Return faults at random moments; every fifth or so while the run is still being set up."""
    faults = []
    for what in whats:
        after = 0 if rng.random() < 0.2 else rng.randrange(int(0.9 * n_chunks))
        delay = rng.uniform(0, 0.05 if after else 0.4)
        stop = rng.uniform(0.3, 2.0) if what == "stop" else 0.0
        faults.append(Fault(what, after, delay, stop))
    return tuple(sorted(faults, key=lambda fault: fault.after))


@dataclass(frozen=True)
class Kind:
    """A kind of trouble."""

    runs: int
    faults: tuple[str, ...] = ()
    """Of which some happen, each perhaps more than once."""
    fewest: int = 0
    most: int = 0
    is_hungry: bool = False


AWAY = ("terminate", "retire", "disconnect")
KINDS = {
    "none": Kind(5),
    "one worker killed": Kind(30, ("kill",), 1, 1),
    "workers killed again and again": Kind(30, ("kill",), 3, 6),
    "worker stopped for a while": Kind(15, ("stop",), 1, 2),
    "worker leaves or is cut off": Kind(30, AWAY, 1, 2),
    "client killed, same call again": Kind(35, ("client",), 1, 3),
    "takes 5 times the memory": Kind(20, is_hungry=True),
    "that, and workers killed": Kind(10, ("kill",), 1, 3, is_hungry=True),
    "all of it": Kind(25, ("kill", "stop", "client", *AWAY), 3, 5, is_hungry=True),
}
N_RUNS = sum(kind.runs for kind in KINDS.values())


def make_case(number: int, *, frames: int | None = None, seconds: float | None = None) -> Case:
    """Return the case of a number.

    Parameters
    ----------
    frames, seconds
        Length of the source and time of a chunk, where others are wanted.
    """
    rng = random.Random(number)
    name = [name for name, kind in KINDS.items() for _ in range(kind.runs)][number]
    kind = KINDS[name]
    frames = frames or rng.choice(LENGTHS)
    n_chunks = frames // FRAMES_PER_CHUNK
    seconds = seconds or min(rng.uniform(0.02, 0.1), MOST_WORK_SECONDS / n_chunks)
    count = rng.randint(kind.fewest, kind.most)
    faults = _faults(rng, n_chunks, [rng.choice(kind.faults) for _ in range(count)])
    hunger = rng.choice(("some", "all")) if kind.is_hungry else "none"
    # A result in memory goes with the client.
    is_stored = any(fault.what == "client" for fault in faults)
    sink = "store" if is_stored else rng.choice(("store", "memory", "reduce"))
    halo = rng.choice((0, 1)) if sink != "reduce" else 0
    source = rng.choice(("zarr", "npy"))
    return Case(number, name, frames, source, sink, halo, seconds, hunger, faults)


@dataclass
class Outcome:
    """What became of a run."""

    number: int
    kind: str
    is_identical: bool = False
    faults: int = 0
    chunks: int = 0
    redone: int = 0
    in_flight: int = 0
    split: int = 0
    """Chunks that were refused memory."""
    seconds: float = 0.0
    error: str = ""

    @property
    def is_good(self) -> bool:
        """Whether all is as it should be."""
        return self.is_identical and not self.error and self.redone <= self.in_flight


class Client:
    """A process that makes the calls."""

    def __init__(self, folder: Path) -> None:
        root = Path(__file__).parents[1]
        paths = [str(root), str(Path(barrow.__file__).parents[1])]
        self.log_path = folder / "client.log"
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "soak.client"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(paths),
                    "BARROW_CACHE": str(folder / "cache"),
                    "BARROW_HISTORY": "off",
                },
            )
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.wait_for("ready")

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put({"event": "failed", "error": "the client has ended"})

    def order(self, **order: Any) -> None:
        """Ask for something."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def wait_for(self, event: str) -> dict[str, Any]:
        """Return the next answer, which should be this."""
        try:
            answer = self._answers.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            self.process.send_signal(signal.SIGUSR1)  # where does it hang?
            time.sleep(0.5)
            raise TimeoutError(f"no answer within {ANSWER_SECONDS:.0f} s") from None
        if answer["event"] != event:
            raise RuntimeError(answer.get("error", str(answer)))
        return answer

    @property
    def has_answered(self) -> bool:
        """Whether there is an answer that nobody has read."""
        return not self._answers.empty()

    def workers(self) -> list[psutil.Process]:
        """Return the worker processes that are alive now."""
        found = []
        for child in psutil.Process(self.process.pid).children():
            try:
                if "barrow.sites.worker" in child.cmdline():
                    found.append(child)
            except psutil.Error:
                continue
        return found

    def kill(self) -> None:
        """Kill the client, and wait until its workers are gone too."""
        workers = self.workers()
        self.process.kill()
        self.process.wait()
        _, alive = psutil.wait_procs(workers, timeout=10)
        if alive:
            raise RuntimeError(f"workers outlived their client: {alive}")

    def close(self) -> None:
        """End it in order."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


@dataclass
class Soak:
    """Carries cases out, one after the other, in a folder."""

    folder: Path
    client_pids: set[str] = field(default_factory=set)
    """A client calls the function as well, to learn what it returns."""
    _client: Client | None = None
    _expected: dict[Any, str] = field(default_factory=dict)

    def carry_out(self, case: Case) -> Outcome:
        """Do one run, let it happen, and look at what is left."""
        run = _Run(self, case)
        outcome = Outcome(case.number, case.kind, chunks=case.n_chunks)
        began = time.perf_counter()
        try:
            run.go(outcome)
        except Exception as error:
            outcome.error = f"{type(error).__name__}: {error}"
            self.drop_client()
        outcome.seconds = time.perf_counter() - began
        if outcome.is_good:
            shutil.rmtree(run.folder)
        return outcome

    def client(self) -> Client:
        """Return the client that is alive; a new one if there is none."""
        if self._client is None or self._client.process.poll() is not None:
            self._client = Client(self.folder)
            self.client_pids.add(str(self._client.process.pid))
        return self._client

    def drop_client(self) -> None:
        """Get rid of a client that did not behave."""
        if self._client is not None and self._client.process.poll() is None:
            self._client.kill()
        self._client = None

    def close(self) -> None:
        """End the client."""
        if self._client is not None:
            self._client.close()

    def source(self, case: Case) -> Path:
        """Return the data of a case, made when they are first wanted."""
        path = self.folder / f"frames-{case.frames}.{case.source}"
        if not path.exists():
            frames = work.make_frames(case.frames)
            if case.source == "npy":
                np.save(path, frames)
            else:
                chunks = (FRAMES_PER_CHUNK, work.HEIGHT, work.WIDTH)
                zarr.create_array(str(path), data=frames, chunks=chunks)
        return path

    def plan(self, case: Case) -> Path:
        """Return the plan of a case, made once with a function that behaves."""
        path = self.folder / f"plan-{case.func}-{case.halo}-{case.sink}.json"
        if not path.exists():
            client = self.client()
            kwargs = {"halo": case.halo} if case.halo else {}
            client.order(
                do="plan",
                func=case.func,
                sink=case.sink,
                source=str(self.source(case)),
                kwargs={**kwargs, "seconds": case.seconds},
                path=str(path),
            )
            client.wait_for("done")
        return path

    def expected(self, case: Case) -> str:
        """Return the digest of the right result, computed with NumPy alone."""
        key = (case.frames, case.func, case.halo)
        if key not in self._expected:
            frames = work.make_frames(case.frames)
            if case.sink == "reduce":
                fold = Fold(np.add)
                for number in range(case.n_chunks):
                    start = number * FRAMES_PER_CHUNK
                    block = frames[start : start + FRAMES_PER_CHUNK]
                    fold.add((0, number), getattr(work, case.func)(block))
                value = fold.result()
            else:
                padded = np.pad(frames, ((case.halo, case.halo), (0, 0), (0, 0)), "symmetric")
                value = work.smooth(padded, halo=case.halo)
                value = value[case.halo : len(value) - case.halo]
            self._expected[key] = digest(value)
        return self._expected[key]


class _Run:
    """One case under way."""

    def __init__(self, soak: Soak, case: Case) -> None:
        self.soak, self.case = soak, case
        self.folder = soak.folder / f"run-{case.number:03d}"
        self.folder.mkdir()
        self.book = Book(self.folder / "book")
        self.flight = Book(self.folder / "flight")
        self.to = self.folder / "out.zarr"
        self._stopped: list[threading.Timer] = []

    def go(self, outcome: Outcome) -> None:
        case = self.case
        expected = self.soak.expected(case)
        plan = self.soak.plan(case)
        client = self._begin(plan)
        for fault in case.faults:
            while self._count_begun() < fault.after and not client.has_answered:
                time.sleep(POLL_SECONDS)
            time.sleep(fault.delay_seconds)
            if client.has_answered:
                break
            outcome.faults += 1
            if fault.what == "client":
                before = time.monotonic()
                client.kill()
                outcome.in_flight += len(self._in_flight(before, time.monotonic()))
                outcome.in_flight += len(self._reported() - self._ledger())
                client = self._begin(plan)
            else:
                outcome.in_flight += self._disturb(client, fault)
        try:
            answer = client.wait_for("done")
        finally:
            for timer in self._stopped:
                timer.join()
        digests = {answer["digest"]}
        if case.sink == "store":
            digests.add(digest(zarr.open_array(str(self.to), mode="r")[...]))
        outcome.is_identical = digests == {expected}
        outcome.redone = self._count_redone()
        outcome.split = self.flight.count("refused")

    def _begin(self, plan: Path) -> Client:
        case = self.case
        kwargs: dict[str, Any] = {
            "book": str(self.book.path),
            "seconds": case.seconds,
            "hunger": case.hunger,
        }
        if case.halo:
            kwargs["halo"] = case.halo
        options = {"like": str(plan)}
        if case.sink == "store":
            options["to"] = str(self.to)
        client = self.soak.client()
        client.order(
            do="run",
            func=case.func,
            sink=case.sink,
            source=str(self.soak.source(case)),
            kwargs=kwargs,
            options=options,
            flight=str(self.flight.path),
        )
        client.wait_for("begun")
        return client

    def _disturb(self, client: Client, fault: Fault) -> int:
        """Do something to a worker; return how many chunks were in flight."""
        rng = random.Random(f"{self.case.number} {fault.after}")
        workers: list[psutil.Process] = []
        while not workers and not client.has_answered:
            workers = client.workers()
        if not workers:
            return 0
        worker = rng.choice(sorted(workers, key=lambda process: process.pid))
        before = time.monotonic()
        try:
            if fault.what == "kill":
                worker.kill()
            elif fault.what == "terminate":
                worker.terminate()
            elif fault.what == "stop":
                worker.suspend()
                self._stopped.append(threading.Timer(fault.stop_seconds, _wake, [worker]))
                self._stopped[-1].start()
                return 0  # nothing is lost
            else:
                client.order(do=fault.what, pid=worker.pid)
                # It takes a while until the order has got there.
                time.sleep(0.1)
        except psutil.NoSuchProcess:
            return 0
        return len(self._in_flight(before, time.monotonic()))

    def _in_flight(self, before: float, after: float) -> set[int]:
        """Return the chunks that were out at some moment between two."""
        out: Counter[int] = Counter()
        for moment, what, *ranges in self.flight.read():
            for number in _numbers(ranges):
                if what == "out" and float(moment) <= after:
                    out[number] += 1
                elif what != "out" and float(moment) < before:
                    out[number] -= 1
        return {number for number, count in out.items() if count > 0}

    def _reported(self) -> set[int]:
        lines = self.flight.read()
        return {n for _, what, *ranges in lines if what == "back" for n in _numbers(ranges)}

    def _ledger(self) -> set[int]:
        """Return the chunks that a killed run has noted, from a copy of its record."""
        partial = self.to.with_name(f".{self.to.name}.partial") / ".barrow"
        folder = partial if partial.exists() else self.to / ".barrow"
        with tempfile.TemporaryDirectory(dir=self.folder) as copy:
            for path in folder.glob("record.sqlite*"):
                shutil.copy(path, copy)
            try:
                with sqlite3.connect(Path(copy) / "record.sqlite") as db:
                    return {number for (number,) in db.execute("select chunk from task")}
            except sqlite3.OperationalError:
                return set()  # it was killed before there was a table

    def _count_begun(self) -> int:
        lines = self.book.read()
        return sum(
            what == "begun" and pid not in self.soak.client_pids for _, what, _, _, pid in lines
        )

    def _count_redone(self) -> int:
        """Return how many times a chunk was begun again, other than for want of memory."""
        begun = np.zeros(self.case.frames, int)
        ended = np.zeros(self.case.frames, int)
        for _, what, first, count, pid in self.book.read():
            if pid in self.soak.client_pids:
                continue
            frames = slice(int(first), int(first) + int(count))
            begun[frames] += {"begun": 1, "failed": -1}.get(what, 0)
            ended[frames] += what == "ended"
        if not ended.all():
            raise RuntimeError(f"frames never computed: {np.flatnonzero(ended == 0)}")
        return int((begun.reshape(-1, FRAMES_PER_CHUNK).max(axis=1) - 1).sum())


def _numbers(ranges: Iterable[str]) -> Iterable[int]:
    for text in ranges:
        start, stop = map(int, text.split("-"))
        yield from range(start, stop)


def _wake(worker: psutil.Process) -> None:
    try:
        worker.resume()
    except psutil.NoSuchProcess:
        pass


def digest(value: Any) -> str:
    """Return a fingerprint of all bits of an array."""
    return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()


def summarise(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Return the sums for each kind of fault."""
    rows: dict[str, dict[str, float]] = {}
    for outcome in outcomes:
        row = rows.setdefault(outcome.kind, Counter())
        row["runs"] += 1
        row["identical"] += outcome.is_identical and not outcome.error
        for name in ("faults", "chunks", "redone", "in_flight", "split", "seconds"):
            row[name] += getattr(outcome, name)
    return rows


def format_table(rows: dict[str, dict[str, float]]) -> str:
    """Return a line for each kind, and one for all."""
    names = ("runs", "identical", "faults", "chunks", "redone", "in_flight", "split", "seconds")
    total = {name: sum(row[name] for row in rows.values()) for name in names}
    lines = [f"{'':32}" + "".join(f"{name.replace('_', ' '):>10}" for name in names)]
    for kind, row in {**rows, "all": total}.items():
        lines.append(f"{kind:32}" + "".join(f"{row[name]:10.0f}" for name in names))
    return "\n".join(lines)


def main() -> int:
    """Do all runs, or some, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, nargs="*", help="numbers of runs")
    parser.add_argument("--every", type=int, default=1, help="do every so manieth run only")
    options = parser.parse_args()
    numbers = options.only or range(0, N_RUNS, options.every)
    folder = Path(tempfile.mkdtemp(prefix="barrow-soak-"))
    soak = Soak(folder)
    outcomes = []
    try:
        for number in numbers:
            case = make_case(number)
            outcome = soak.carry_out(case)
            outcomes.append(outcome)
            if options.only or not outcome.is_good:
                print(case, outcome, sep="\n", flush=True)
    finally:
        soak.close()
    rows = summarise(outcomes)
    print(format_table(rows))
    bad = [outcome for outcome in outcomes if not outcome.is_good]
    if not options.only and options.every == 1:
        facts = {"question": __doc__.splitlines()[0], **describe_machine()}
        runs = [asdict(outcome) for outcome in outcomes]
        write_json("faults", {**facts, "summary": rows, "runs": runs}, RESULTS)
    if bad:
        print(f"{len(bad)} of {len(outcomes)} went wrong; what they left is in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
