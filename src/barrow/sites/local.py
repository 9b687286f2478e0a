"""Start workers on this machine, sized to what it can give."""

import math
import os
import sys
from collections.abc import Mapping

from barrow.errors import InputError
from barrow.model.site import Machine
from barrow.model.step import check_resources
from barrow.sites.asked import check_count, parse_memory
from barrow.sites.cluster import Cluster
from barrow.sites.environment import list_search_path
from barrow.sites.machine import read_machine
from barrow.sites.scratch import Scratch
from barrow.sites.security import make_credentials, write_credentials
from barrow.units import format_bytes

SHARE_OF_AVAILABLE = 0.8
"""The rest is for the client, its data, and whatever else the machine does."""
START_SECONDS = 120.0


def start_local(
    workers: int | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    resources: Mapping[str, float] | None = None,
) -> Cluster:
    """Start worker processes on this machine and wait until they are ready.

    Works the same in a script with or without ``if __name__ == "__main__"``, in
    ``python -c``, at a prompt, and in a notebook.

    Parameters
    ----------
    workers
        How many processes; one for each core that may be used, if not given.
    threads
        Threads of each; one, if not given.
    memory
        Limit of each, in bytes or as text such as ``"5GB"``; an equal share of four
        fifths of the memory that is available now, if not given.
    resources
        What the machine has for tasks that ask for it, shared out among the workers.
    """
    machine = read_machine()
    size = size_workers(machine, workers, threads, parse_memory(memory))
    search_path = list_search_path(sys.path, os.getcwd())

    from distributed import Client

    from barrow.sites.processes import LocalProcesses

    scratch = Scratch.create()
    try:
        credentials = make_credentials()
        write_credentials(credentials, scratch.path)
        processes = LocalProcesses(
            machine,
            *size,
            scratch=str(scratch.path),
            credentials=credentials,
            search_path=search_path,
            resources=share_out(check_resources(resources), size[0]),
        )
    except BaseException:
        scratch.close()
        raise

    def finish() -> None:
        processes.close(timeout=10)
        scratch.close()

    try:
        cluster = Cluster(Client(processes), manager=processes, is_own_client=True, finish=finish)
    except BaseException:
        finish()
        raise
    try:
        cluster.wait(size[0], timeout=START_SECONDS)
    except BaseException:
        cluster.close()
        raise
    return cluster


def size_workers(
    machine: Machine,
    workers: int | None = None,
    threads: int | None = None,
    memory_bytes: int | None = None,
) -> tuple[int, int, int]:
    """Return how many workers fit a machine, with how many threads and bytes each.

    Examples
    --------
    >>> laptop = Machine("laptop", cores=8, total_bytes=16 * 2**30, available_bytes=10 * 2**30)
    >>> size_workers(laptop)
    (8, 1, 1073741824)
    >>> size_workers(laptop, workers=2, threads=4)
    (2, 4, 4294967296)

    As many workers as have room, if only their memory is given.

    >>> size_workers(laptop, memory_bytes=4 * 2**30)
    (2, 1, 4294967296)
    """
    for name, value in (("workers", workers), ("threads", threads), ("memory", memory_bytes)):
        if value is not None:
            check_count(name, value)
    usable_bytes = int(machine.available_bytes * SHARE_OF_AVAILABLE)
    each = threads or 1
    count = workers or max(1, machine.cores // each)
    if workers is None and memory_bytes is not None:
        count = max(1, min(count, usable_bytes // memory_bytes))
    share_bytes = max(1, usable_bytes // count)
    limit_bytes = memory_bytes or share_bytes
    if count * limit_bytes > machine.total_bytes:
        raise InputError(
            f"{count} workers of {format_bytes(limit_bytes)} need "
            f"{format_bytes(count * limit_bytes)}, but there are "
            f"{format_bytes(machine.total_bytes)} of memory, and "
            f"{format_bytes(machine.available_bytes)} of it are free.\n"
            f"Try memory={share_bytes} ({format_bytes(share_bytes)}), or fewer workers."
        )
    return count, each, limit_bytes


def share_out(resources: Mapping[str, float], workers: int) -> list[dict[str, float]]:
    """Return what each worker offers of what the machine has: whole ones, the first have more.

    Examples
    --------
    >>> share_out({"GPU": 3}, workers=2)
    [{'GPU': 2}, {'GPU': 1}]
    >>> share_out({"GPU": 1}, workers=2)
    [{'GPU': 1}, {}]
    """
    shares: list[dict[str, float]] = [{} for _ in range(workers)]
    for name, total in resources.items():
        for number in range(math.ceil(total)):
            share = shares[number % workers]
            share[name] = share.get(name, 0) + min(1, total - number)
    return shares
