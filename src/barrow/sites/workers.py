"""What is known of the workers of a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

from barrow.units import format_bytes, format_count


class WorkerExit(NamedTuple):
    """How a worker process ended that nobody had asked to."""

    name: str
    pid: int
    code: int
    """Exit code; the negative number of the signal if one killed it."""
    time: float
    """Seconds since the epoch."""
    why: str = ""
    """Set if it was ended here."""


@dataclass(frozen=True)
class WorkerInfo:
    """One worker as the scheduler knows it."""

    name: str
    address: str
    host: str
    pid: int | None
    """Unknown for a worker that was not started here."""
    threads: int
    limit_bytes: int
    """Memory it may hold; zero if it has no limit."""
    held_bytes: int = 0
    """Memory it held when it was last heard of; zero if that cannot be told."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """What it offers beside threads and memory."""


def parse_worker(address: str, worker: Mapping[str, Any]) -> WorkerInfo:
    """Return a worker from what the scheduler says about it.

    Examples
    --------
    >>> said = {"name": 0, "host": "127.0.0.1", "nthreads": 2, "memory_limit": None}
    >>> parse_worker("tcp://127.0.0.1:4000", said).limit_bytes
    0
    """
    return WorkerInfo(
        name=str(worker["name"]),
        address=address,
        host=worker["host"],
        pid=worker.get("pid"),
        threads=worker["nthreads"],
        limit_bytes=worker["memory_limit"] or 0,
        # A worker inside the client's process does not hold what that process holds.
        held_bytes=0
        if address.startswith("inproc:")
        else worker.get("metrics", {}).get("memory", 0),
        resources=worker.get("resources", {}),
    )


def describe_workers(workers: tuple[WorkerInfo, ...]) -> str:
    """Return a line about all workers.

    Examples
    --------
    >>> one = WorkerInfo("0", "tcp://127.0.0.1:4000", "127.0.0.1", 7, 1, 2**30)
    >>> describe_workers((one, one))
    '2 workers, 2 threads, 2.00 GiB'
    """
    threads = sum(worker.threads for worker in workers)
    limit_bytes = sum(worker.limit_bytes for worker in workers)
    counts = f"{format_count(len(workers), 'worker')}, {format_count(threads, 'thread')}"
    return f"{counts}, {format_bytes(limit_bytes)}" if limit_bytes else counts


MOST_SHOWN = 16


def format_html(workers: tuple[WorkerInfo, ...]) -> str:
    """Return a table of workers for a notebook."""
    head = "".join(f"<th>{name}</th>" for name in ("worker", "host", "threads", "memory"))
    body = "".join(f"<tr>{_format_cells(worker)}</tr>" for worker in workers[:MOST_SHOWN])
    left = len(workers) - MOST_SHOWN
    more = f"<tr><td colspan='4'>… and {left} more</td></tr>" if left > 0 else ""
    return f"<table><tr>{head}</tr>{body}{more}</table>"


def _format_cells(worker: WorkerInfo) -> str:
    held = format_bytes(worker.held_bytes) if worker.held_bytes else ""
    limit = f" of {format_bytes(worker.limit_bytes)}" if worker.limit_bytes else ""
    memory = f"{held}{limit}".removeprefix(" of ")
    return "".join(
        f"<td>{escape(str(text))}</td>"
        for text in (worker.name, worker.host, worker.threads, memory)
    )
