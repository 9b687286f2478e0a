"""What ran: calls of functions on workers, from a run of barrow's own or of Dask's.

Both are brought into one form here; nothing after this asks where a task came from.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from barrow.reporting.tables import Columns, Tables, numbers

PHASES = ("reading", "computing", "writing")


@dataclass(frozen=True)
class Tasks:
    """One entry for each call, in columns; times are seconds since the epoch."""

    step: list[str]
    label: list[str]
    process: list[str]
    thread: list[str]
    started: np.ndarray
    seconds: np.ndarray
    phases: np.ndarray
    """Seconds of reading (or waiting for data), computing and writing: a column for each."""
    cpu_seconds: np.ndarray
    peak_bytes: np.ndarray
    read_bytes: np.ndarray
    written_bytes: np.ndarray
    resident_bytes: np.ndarray
    """Of the process, just after; NaN where it is not known."""
    first_chunk: np.ndarray
    """Number of its first chunk; -1 for a task of Dask's."""
    cells: np.ndarray
    """Chunks that were computed in this call."""
    outcome: list[str]
    error: list[str]
    has_phases: bool
    """Whether the phases come one after the other and are worth a colour each."""

    def __len__(self) -> int:
        return len(self.step)

    @property
    def ended(self) -> np.ndarray:
        """When each call was over."""
        return np.asarray(self.started + self.seconds)

    @property
    def is_done(self) -> np.ndarray:
        """Which of them succeeded."""
        return np.array([outcome == "done" for outcome in self.outcome], bool)

    def pick(self, chosen: np.ndarray) -> "Tasks":
        """Return some of them: by a mask or by numbers."""
        index = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        picked: dict[str, Any] = {
            name: value[index] if isinstance(value, np.ndarray) else [value[i] for i in index]
            for name, value in vars(self).items()
            if name != "has_phases"
        }
        return Tasks(**picked, has_phases=self.has_phases)


def read_tasks(record: Tables, step: str, since: float) -> Tasks:
    """Return all calls that the record knows.

    Parameters
    ----------
    step
        What a run of barrow's own applies to each chunk: its record has no column for it.
    since
        Chunks that were done before belong to an earlier run that this one took up.
    """
    own, earlier = record.columns("task"), record.columns("stage_task")
    dask = _from_dask(record.columns("dask_task"))
    parts = []
    if earlier["chunk"]:
        done = _from_chunks(earlier, earlier["step"])
        # Their numbers are of other grids: no plan of this one speaks of them.
        parts.append(replace(done, first_chunk=np.full(len(done), -1, np.int64)))
    if own["chunk"]:
        tasks = _from_chunks(own, [step] * len(own["chunk"]))
        parts.append(tasks.pick(tasks.ended >= since))
    if not parts:
        return dask
    # On a Dask cluster a run of barrow's own sends chunks in batches: what became of
    # those that were not done is known to Dask alone.
    failed = dask.pick(~dask.is_done)
    return functools.reduce(_join, [*parts, failed] if len(failed) else parts)


def _from_chunks(rows: Columns, steps: Sequence[str]) -> Tasks:
    """Return calls from a table with a row for each chunk: those of one call share a start."""
    workers, worker = np.unique(np.array(rows["worker"], object), return_inverse=True)
    started, chunk = numbers(rows["started"]), np.array(rows["chunk"], np.int64)
    order = np.lexsort((chunk, started, worker))
    sorted_worker, sorted_start = worker[order], started[order]
    is_first = np.array(rows["cells"])[order] == 1
    is_first[0] = True
    is_first[1:] |= (np.diff(sorted_worker) != 0) | (np.diff(sorted_start) != 0)
    first = np.flatnonzero(is_first)

    def total(name: str) -> np.ndarray:
        return np.add.reduceat(numbers(rows[name])[order], first)

    def most(name: str) -> np.ndarray:
        return np.maximum.reduceat(numbers(rows[name])[order], first)

    phases = np.stack([total(f"{name}_seconds") for name in ("read", "compute", "write")], axis=1)
    cells = np.diff(np.append(first, len(order)))
    split = [str(workers[w]).partition("/") for w in sorted_worker[first]]
    numbers_of = chunk[order][first]
    return Tasks(
        step=[steps[i] for i in order[first]],
        label=[
            f"chunk {n:,}" if count == 1 else f"chunks {n:,} to {n + count - 1:,}"
            for n, count in zip(numbers_of.tolist(), cells.tolist(), strict=True)
        ],
        process=[process for process, _, _ in split],
        thread=[thread for _, _, thread in split],
        started=sorted_start[first],
        seconds=phases.sum(axis=1),
        phases=phases,
        cpu_seconds=total("cpu_seconds"),
        peak_bytes=most("peak_bytes"),
        read_bytes=total("read_bytes"),
        written_bytes=total("written_bytes"),
        resident_bytes=most("resident_bytes"),
        first_chunk=numbers_of,
        cells=cells,
        outcome=["done"] * len(first),
        error=[""] * len(first),
        has_phases=True,
    )


def _from_dask(rows: Columns) -> Tasks:
    count = len(rows["key"])
    started, ended = numbers(rows["started"]), numbers(rows["ended"])
    waiting = numbers(rows["send_seconds"]) + numbers(rows["spill_seconds"])
    nothing = np.zeros(count)
    return Tasks(
        step=[str(step) for step in rows["step"]],
        label=[str(key) for key in rows["key"]],
        process=[str(worker or "unknown") for worker in rows["worker"]],
        thread=["" if thread is None else str(thread) for thread in rows["thread"]],
        started=started,
        seconds=np.maximum(ended - started, 0),
        phases=np.stack([waiting, numbers(rows["compute_seconds"]), nothing], axis=1),
        cpu_seconds=numbers(rows["cpu_seconds"]),
        peak_bytes=numbers(rows["peak_bytes"]),
        read_bytes=numbers(rows["received_bytes"]),
        written_bytes=numbers(rows["result_bytes"]),
        resident_bytes=np.full(count, np.nan),
        first_chunk=np.full(count, -1, np.int64),
        cells=np.ones(count, np.int64),
        outcome=[str(outcome) for outcome in rows["outcome"]],
        error=[str(error or "") for error in rows["error"]],
        has_phases=False,
    )


def _join(one: Tasks, other: Tasks) -> Tasks:
    joined: dict[str, Any] = {}
    for name, value in vars(one).items():
        more = getattr(other, name)
        if isinstance(value, np.ndarray):
            joined[name] = np.concatenate([value, more])
        elif isinstance(value, Sequence):
            joined[name] = [*value, *more]
    return Tasks(**joined, has_phases=one.has_phases)
