"""Say what there is to run on, and what barrow would do with it."""

import shutil
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path

from barrow.errors import BarrowError
from barrow.model.site import Machine
from barrow.sites.announcing import list_announced
from barrow.sites.attached import find_place
from barrow.sites.local import size_workers
from barrow.sites.machine import read_machine
from barrow.sites.partitions import Partition
from barrow.sites.scratch import choose_parent, find_file_system
from barrow.sites.slurm import read_partitions
from barrow.units import format_bytes, format_count, format_seconds


def survey() -> Iterator[str]:
    """Yield the lines of a description, as they become known."""
    machine = read_machine()
    yield from describe_machine(machine)
    yield _describe_scratch()
    place = find_place()
    if place is not None:
        yield f"Dask: {place} is named in your environment or in Dask's configuration."
    announced = list_announced()
    for cluster in announced:
        yield f"Open: {cluster.name} at {cluster.address}, scheduler file {cluster.path}"
    yield from _survey_slurm()
    yield ""
    if place is not None:
        yield "barrow.map would run on that Dask cluster, unless it is told otherwise."
    else:
        yield (
            "barrow.map would measure the function, and then choose: one chunk after the other, "
            f"{format_count(machine.cores, 'thread')}, or worker processes."
        )
    workers, threads, limit = size_workers(machine)
    yield (
        f"barrow.cluster('local') would start {format_count(workers, 'worker')}, with "
        f"{format_count(threads, 'thread')} and {format_bytes(limit)} each."
    )


def describe_machine(machine: Machine) -> Iterator[str]:
    """Yield what this process may use of its machine.

    Examples
    --------
    >>> laptop = Machine("laptop", cores=8, total_bytes=16 * 2**30, available_bytes=10 * 2**30)
    >>> print(*describe_machine(laptop), sep="\\n")
    This machine: laptop
      8 cores, 10.0 GiB of 16.0 GiB free: what this process may use, all limits respected
    """
    processor = f", {machine.processor}" if machine.processor else ""
    yield f"This machine: {machine.host}{processor}"
    yield (
        f"  {format_count(machine.cores, 'core')}, {format_bytes(machine.available_bytes)} of "
        f"{format_bytes(machine.total_bytes)} free: what this process may use, all limits respected"
    )


def describe_partitions(partitions: Sequence[Partition]) -> Iterator[str]:
    """Yield a line for each partition.

    Examples
    --------
    >>> from barrow.sites.partitions import Node
    >>> print(*describe_partitions([Partition("short", (Node("a", 8, 8 * 2**30),), 3600)]))
      short: 1 node, up to 8 cores and 8.00 GiB, jobs of at most 1 h 0 min
    """
    for partition in partitions:
        default = ", the default" if partition.is_default else ""
        if not partition.nodes:
            yield f"  {partition.name}: no node can run anything{default}"
            continue
        hours = partition.most_seconds
        limit = "" if hours == inf else f", jobs of at most {format_seconds(hours)}"
        cores = max(node.cores for node in partition.nodes)
        memory = max(node.memory_bytes for node in partition.nodes)
        yield (
            f"  {partition.name}: {format_count(len(partition.nodes), 'node')}, up to "
            f"{format_count(cores, 'core')} and {format_bytes(memory)}{limit}{default}"
        )


def _describe_scratch() -> str:
    place = choose_parent()
    free = format_bytes(shutil.disk_usage(place).free)
    try:
        kind = find_file_system(place, Path("/proc/self/mounts").read_text())
    except OSError:
        kind = ""
    return f"  temporary files: {place}{f' ({kind})' if kind else ''}, {free} free"


def _survey_slurm() -> Iterator[str]:
    if shutil.which("sinfo") is None:
        yield "SLURM: none here."
        return
    try:
        partitions = read_partitions()
    except BarrowError as error:
        words = str(error).splitlines()[-1]
        yield f"SLURM: its commands are here, but it does not answer: {words}"
        return
    yield "SLURM:"
    yield from describe_partitions(partitions)
