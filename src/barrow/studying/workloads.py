"""The kinds of work that can be studied, each run in a setting as its user would run it."""

import inspect
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from barrow import api
from barrow.errors import BudgetError, InputError
from barrow.model.plan import Plan
from barrow.observing import watch
from barrow.recording.reading import open_record
from barrow.recording.watching import watch_command
from barrow.sites.announcing import announcing
from barrow.sites.security import CERTIFICATE_FILE, KEY_FILE
from barrow.studying.repeat import Repeat, Tables, read_repeat
from barrow.units import format_bytes, format_count

WORKERS_VARIABLE = "BARROW_WORKERS"
"""Tells a script how many workers it should have."""


class Workload(Protocol):
    """Work that can be done with any number of workers."""

    @property
    def name(self) -> str:
        """What it is called."""

    def offer(self, cluster: Any) -> AbstractContextManager[Any]:
        """Make a cluster ready for it; what comes of that is given to ``measure``."""

    def measure(self, offered: Any, workers: int, folder: Path) -> Repeat:
        """Do the work once, and keep its record in a folder."""


def as_workload(given: Any) -> Workload:
    """Return what a user gave as work that can be measured."""
    if isinstance(given, Script):
        return given
    if isinstance(given, Plan):
        if given.target is None:
            raise InputError(
                "A plan that was read from a file has lost its function and its data: make it "
                "again with barrow.plan(func, data, like=plan)."
            )
        return PlanWork(given)
    if callable(given):
        return Call(given)
    if isinstance(given, (str, PathLike)):
        return Script((os.fspath(given),))
    raise InputError(
        f"workload={given!r} cannot be run. Give a function without arguments (or with a client "
        "as its argument), a plan from barrow.plan, or the path of a script."
    )


@dataclass(frozen=True)
class Call:
    """A function that does the work when it is called."""

    func: Callable[..., Any]

    @property
    def name(self) -> str:
        """What the function is called."""
        return str(getattr(self.func, "__name__", type(self.func).__name__))

    def offer(self, cluster: Any) -> AbstractContextManager[Any]:
        """Give the client to the function, if it wants one; it is Dask's current one anyway."""
        return nullcontext((cluster.client,) if wants_client(self.func) else ())

    def measure(self, offered: Any, workers: int, folder: Path) -> Repeat:  # noqa: ARG002
        """Call the function, and watch what happens."""
        with watch(folder) as watched:
            began = time.time()
            self.func(*offered)
            ended = time.time()
        return read_repeat(watched.record, began, ended)


@dataclass(frozen=True)
class PlanWork:
    """A plan of barrow's: the same chunks with each number of workers."""

    plan: Plan

    @property
    def name(self) -> str:
        """What the plan is called."""
        return self.plan.name

    def offer(self, cluster: Any) -> AbstractContextManager[Any]:
        """Run it there."""
        return nullcontext(cluster)

    def measure(self, offered: Any, workers: int, folder: Path) -> Repeat:  # noqa: ARG002
        """Run the plan; its result is not kept."""
        ready = on_cluster(self.plan, offered.site())
        ran = api.run(ready, cluster=offered, folder=folder, resume=False, quiet=True)
        return read_run(ran.folder)


@dataclass(frozen=True)
class Script:
    """A Python program of the user's, and its arguments."""

    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file, or the module after ``-m``."""
        return Path(self.arguments[self.arguments[0] == "-m"]).name

    def offer(self, cluster: Any) -> AbstractContextManager[Any]:
        """Let other processes find the cluster."""
        return announcing(cluster, "local")

    def measure(self, offered: Any, workers: int, folder: Path) -> Repeat:
        """Run the script under ``barrow watch``, with the cluster in its environment."""
        environment = describe_cluster(offered.address, offered.folder, workers)
        code = watch_command(self.arguments, folder, environment=environment)
        if code:
            raise InputError(
                f"{self.name} ended with exit status {code} on "
                f"{format_count(workers, 'worker')}; its record is in {folder}."
            )
        record = open_record(folder)
        check_workers(record, workers, self.name)
        return read_repeat(record, float(record.facts["began"]), float(record.facts["ended"]))


def wants_client(func: Callable[..., Any]) -> bool:
    """Tell whether a function has to be given something: then it is a client.

    Examples
    --------
    >>> wants_client(lambda client: client.submit), wants_client(lambda size=3: size)
    (True, False)
    """
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.default is p.empty and p.kind in places]
    if len(needed) > 1:
        names = ", ".join(parameter.name for parameter in needed)
        raise InputError(
            f"workload= needs arguments ({names}), and at most a client is given to it. Write "
            "for example barrow.scaling(lambda: analyse(data))."
        )
    return bool(needed)


def on_cluster(plan: Plan, site: Any) -> Plan:
    """Return a plan with the workers of a site, whatever it was made for; chunks stay."""
    budget = min(offer.room_bytes // max(1, offer.threads) for offer in site.offers)
    if plan.peak_bound_bytes > budget:
        raise BudgetError(
            f"A task of '{plan.name}' may need {format_bytes(plan.peak_bound_bytes)}, but with "
            f"{format_count(site.workers, 'worker')} it may use {format_bytes(budget)}.\n"
            "Try fewer workers, or smaller chunks: plan.with_chunks(...)."
        )
    return replace(
        plan,
        engine="dask",
        workers=site.workers,
        threads=site.threads,
        at_once=0,
        is_local=site.is_local,
        budget_bytes=budget,
        before=tuple(on_cluster(stage, site) for stage in plan.before),
        # Other chunks on the way would be another setting.
        options={**plan.options, "to": None, "may_resize": False},
    )


def read_run(folder: Path) -> Repeat:
    """Return what a run of barrow's own took; its result is removed, its record stays."""
    record = open_record(folder)
    stages = record.facts.get("stages") or []
    began = min([float(record.facts["began"]), *(float(stage["began"]) for stage in stages)])
    shutil.rmtree(folder / "result.zarr", ignore_errors=True)
    return read_repeat(record, began, float(record.facts["ended"]))


def describe_cluster(address: str, credentials: Path, workers: int) -> dict[str, str]:
    """Return the environment in which ``distributed.Client()`` finds a cluster of our own."""
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    certificate, key = str(credentials / CERTIFICATE_FILE), str(credentials / KEY_FILE)
    return {
        WORKERS_VARIABLE: str(workers),
        # For Dask's schedulers without a cluster.
        "DASK_NUM_WORKERS": str(workers),
        "DASK_SCHEDULER_ADDRESS": address,
        f"{tls}CA_FILE": certificate,
        f"{tls}CLIENT__CERT": certificate,
        f"{tls}CLIENT__KEY": key,
    }


def check_workers(record: Tables, workers: int, name: str) -> None:
    """Refuse what was not measured with the number of workers that was wanted."""
    found = count_workers(record.columns("process"))
    if found == workers:
        return
    if not found:
        raise InputError(
            f"{name} ran no task of Dask: there is nothing that could scale. Call Client() in it, "
            "without arguments."
        )
    raise InputError(
        f"{name} ran on {format_count(found, 'worker')}, though there should be {workers}: it "
        "makes its own cluster.\nLet it call Client() without arguments, which finds the one that "
        "is offered; or take the number from the environment: "
        f"LocalCluster(n_workers=int(os.environ[{WORKERS_VARIABLE!r}]))."
    )


def count_workers(processes: Mapping[str, Sequence[Any]]) -> int:
    """Return how many workers there were at once; without a cluster, how many threads.

    Examples
    --------
    >>> names = ("kind", "threads", "joined", "left")
    >>> rows = [("worker", 1, 0.0, 5.0), ("worker", 1, 0.1, None), ("worker", 1, 6.0, None)]
    >>> count_workers(dict(zip(names, zip(*rows))))
    2
    """
    rows = list(
        zip(*(processes[name] for name in ("kind", "threads", "joined", "left")), strict=True)
    )
    changes = [(joined, 1) for kind, _, joined, _ in rows if kind == "worker"]
    changes += [(left, -1) for kind, _, _, left in rows if kind == "worker" and left is not None]
    if not changes:
        return max((int(threads or 0) for _, threads, _, _ in rows), default=0)
    there = most = 0
    for _, change in sorted(changes):
        there += change
        most = max(most, there)
    return most
