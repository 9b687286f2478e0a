"""Facts derived from a record, each once: what the rules read.

Tables in, numbers out; no cluster, no clock, no files. A record of barrow's own run and one of
a watched program give the same facts, as far as they were measured.
"""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd

from barrow.diagnosing.intervals import merge, split_free_time, total_length
from barrow.diagnosing.own_tasks import read_own_tasks
from barrow.model.finding import Severity

COSTLY_SHARE, COSTLY_SECONDS = 0.2, 2.0
"""Of a run's time, and at least: what makes a loss of time worth a warning."""


class Tables(Protocol):
    """A record, as far as diagnosing needs it."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is known of the run as a whole."""

    def columns(self, name: str) -> Mapping[str, list[Any]]:
        """Return one table, column by column."""


class Facts:
    """What is known of one run."""

    def __init__(self, record: Tables) -> None:
        self._record = record
        self.run = dict(record.facts)

    def _table(self, name: str) -> pd.DataFrame:
        return pd.DataFrame(self._record.columns(name))

    @cached_property
    def is_own(self) -> bool:
        """Whether barrow made the run, rather than watched it."""
        return self.run.get("kind") == "run"

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The plan of a run of barrow's own; empty otherwise."""
        plan = self.run.get("plan")
        return plan if isinstance(plan, dict) else {}

    @cached_property
    def cores(self) -> int:
        """Of the machine of the client."""
        found = (self.run.get("machine") or {}).get("cores") or self.plan.get("cores")
        return int(found or 1)

    @cached_property
    def memory_bytes(self) -> int:
        """Of the machine of the client; 0 if nobody knows."""
        return int((self.run.get("machine") or {}).get("memory_bytes") or 0)

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """Attempts at tasks: when, where, what they took; ``began`` is when computing began."""
        if self.is_own:
            return read_own_tasks(self._table("task"), self.plan, str(self.run.get("host", "")))
        found = self._table("dask_task")
        numbers = ["ready", "started", "ended", "compute_seconds", "send_seconds", "spill_seconds"]
        numbers += ["received_bytes", "result_bytes", "cpu_seconds"]
        found[numbers] = found[numbers].astype(float)
        found["began"] = found["ended"] - found["compute_seconds"]
        found["ready"] = found["ready"].fillna(found["started"])
        return found

    @cached_property
    def ran(self) -> pd.DataFrame:
        """Tasks that were computed to their end."""
        return self.tasks[(self.tasks["outcome"] == "done")]

    @cached_property
    def events(self) -> pd.DataFrame:
        """What happened, with its numbers in ``details`` and the process in ``process``."""
        found = self._table("event")
        found["details"] = [json.loads(text or "{}") for text in found["details"]]
        found["process"] = [str(details.get("process", "")) for details in found["details"]]
        return found[found["time"] >= self.began - 1].sort_values("time", ignore_index=True)

    @cached_property
    def log_messages(self) -> list[str]:
        """Warnings and errors of all processes."""
        return [str(text) for text in self._record.columns("log")["message"]]

    def happened(self, *kinds: str) -> pd.DataFrame:
        """Return the events of some kinds."""
        return self.events[self.events["kind"].isin(kinds)]

    @cached_property
    def processes(self) -> pd.DataFrame:
        """Every process that took part, by its name."""
        found = self._table("process").set_index("name")
        numbers = ["threads", "limit_bytes", "joined", "left"]
        found[numbers] = found[numbers].astype(float)
        return found

    @cached_property
    def workers(self) -> pd.DataFrame:
        """Processes that Dask gave tasks to, the client with threads of its own included."""
        return self.processes[self.processes["threads"].fillna(0) > 0]

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Memory and counters of processes, by time."""
        found = self._table("sample")
        numbers = [name for name in found.columns if name != "process"]
        found[numbers] = found[numbers].astype(float)
        return found.sort_values("time", kind="stable", ignore_index=True)

    @cached_property
    def samples_of(self) -> dict[str, pd.DataFrame]:
        """The same, for each process."""
        return {str(name): part for name, part in self.samples.groupby("process")}

    @cached_property
    def began(self) -> float:
        """When the run began."""
        return float(self.run.get("began") or 0.0)

    @cached_property
    def last(self) -> float:
        """When it ended, or was heard of last."""
        ended = self.run.get("ended")
        if ended and float(ended) >= self.began:
            return float(ended)
        found = [self.began, self.tasks["ended"].max(), self.samples["time"].max()]
        return float(np.nanmax(np.array(found, float)))

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(1e-9, self.last - self.began)

    @cached_property
    def is_over(self) -> bool:
        """Whether it has ended, one way or another."""
        return bool(self.run.get("status", "running") != "running")

    @cached_property
    def active(self) -> np.ndarray:
        """Stretches of time in which a task could run or ran: a row for each."""
        return merge(self.tasks["ready"], self.tasks["ended"])

    @cached_property
    def active_seconds(self) -> float:
        """How long there was something to do."""
        return total_length(self.active)

    @cached_property
    def slots(self) -> int:
        """Tasks that could run at once when most workers were there."""
        if self.is_own:
            return int(self.plan.get("workers") or 1) * int(self.plan.get("threads") or 1)
        stays = self.workers
        if stays.empty:
            return int(min(self.cores, max(1, self.tasks["thread"].nunique())))
        left = stays["left"].fillna(self.last)
        held = [
            float(stays["threads"][(stays["joined"] <= at) & (left >= at)].sum())
            for at in stays["joined"] + 0.01
        ]
        return max(1, int(max(held)))

    @cached_property
    def lost_seconds(self) -> dict[str, float]:
        """Seconds of slots while there was work, that were not spent on computing.

        ``overhead``: a task waited and a slot was free; ``idle``: nothing waited.
        """
        is_done = self.tasks["outcome"] == "done"
        # What did not come to its end kept a worker busy as well, from when it was handed out.
        began = self.tasks["began"].where(is_done, self.tasks["started"])
        return split_free_time(self.tasks.assign(began=began), self.active, self.slots)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Numbers of each step, the one that computed longest first."""
        found = self.ran.groupby("step").agg(
            tasks=("step", "size"),
            compute_seconds=("compute_seconds", "sum"),
            median_seconds=("compute_seconds", "median"),
            longest_seconds=("compute_seconds", "max"),
            began=("began", "min"),
            ended=("ended", "max"),
            result_bytes=("result_bytes", "sum"),
            largest_bytes=("result_bytes", "max"),
            received_bytes=("received_bytes", "sum"),
            transfer_seconds=("send_seconds", "sum"),
        )
        return found.sort_values("compute_seconds", ascending=False)

    @cached_property
    def activity(self) -> dict[tuple[str, ...], float]:
        """Seconds and bytes as Dask has measured them: (kind, step, what, unit) and the like."""
        found: dict[tuple[str, ...], float] = {}
        for name, values in self.run.items():
            if name.startswith("activity "):
                for key, value in values.items():
                    parts = tuple(key.split(" | "))
                    found[parts] = found.get(parts, 0.0) + value
        return found

    def sum_activity(self, kind: str, *whats: str, unit: str = "seconds") -> float:
        """Return the sum over all steps of what Dask has measured."""
        return sum(
            value
            for parts, value in self.activity.items()
            if parts[0] == kind and parts[-1] == unit and parts[-2] in whats
        )

    @cached_property
    def inside(self) -> dict[str, dict[str, Any]]:
        """What worker processes saw of themselves."""
        found: dict[str, dict[str, Any]] = {}
        for name, values in self.run.items():
            if name.startswith("inside "):
                found.update(values)
        return found

    def label(self, process: str) -> str:
        """Return what a user calls a process: ``worker 1``."""
        if process not in self.processes.index:
            return f"worker {process}"
        row = self.processes.loc[process]
        if row["kind"] != "worker":
            return f"{row['kind']} {process}"
        label = row["label"]
        return f"worker {label if isinstance(label, str) and label else process}"

    def limit_of(self, process: str) -> float:
        """Return the memory limit of a process; NaN if it has none."""
        if process not in self.processes.index:
            return float("nan")
        return float(self.processes.at[process, "limit_bytes"])

    def used_cpu(self, process: str, first: float, last: float) -> float:
        """Return the CPU seconds that a process used between two times; NaN if unknown."""
        own = self.samples_of.get(process)
        if own is None:
            return float("nan")
        own = own[own["cpu_seconds"].notna()]
        if len(own) < 2:
            return float("nan")
        cpu = np.interp([first, last], own["time"], own["cpu_seconds"])
        return float(cpu[1] - cpu[0])

    def weigh(self, saves_seconds: float) -> Severity:
        """Return how bad a loss of time is."""
        is_costly = saves_seconds >= max(COSTLY_SECONDS, COSTLY_SHARE * self.seconds)
        return "warning" if is_costly else "note"
