"""Read what the partitions of a SLURM cluster offer, and choose the smallest that suffices.

Text in, nouns out: nothing is run here.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from barrow.errors import InputError
from barrow.units import format_bytes, format_count, format_seconds

MEBIBYTE = 2**20
LIST_NODES = ("sinfo", "--noheader", "--Node", "--format=%P|%a|%c|%m|%l|%T|%o")
"""Partition, whether it is up, cores, MiB, longest time, state and address of each node."""
UNUSABLE = ("down", "drain", "fail", "unk", "inval", "maint")


@dataclass(frozen=True)
class Node:
    """One machine of a partition."""

    address: str
    cores: int
    memory_bytes: int

    @property
    def share_bytes(self) -> int:
        """Memory for each core, if all are used."""
        return self.memory_bytes // max(1, self.cores)


@dataclass(frozen=True)
class Partition:
    """A part of the cluster with a queue of its own."""

    name: str
    nodes: tuple[Node, ...]
    """Those that can run something."""
    most_seconds: float = inf
    """How long a job may run."""
    is_default: bool = False

    def list_sufficient(self, memory_bytes: int, cores: int) -> list[Node]:
        """Return the nodes that can run such a job, the smallest first."""
        fit = [n for n in self.nodes if n.memory_bytes >= memory_bytes and n.cores >= cores]
        return sorted(fit, key=lambda node: (node.memory_bytes, node.cores))

    def count_places(self, memory_bytes: int, cores: int) -> int:
        """Return how many such jobs can run at once.

        Examples
        --------
        >>> Partition("short", (Node("a", 8, 8 * 2**30),)).count_places(3 * 2**30, cores=1)
        2
        """
        fit = self.list_sufficient(memory_bytes, cores)
        return sum(
            min(node.cores // cores, node.memory_bytes // max(1, memory_bytes)) for node in fit
        )


def parse_partitions(text: str) -> tuple[Partition, ...]:
    """Return the partitions that are up, from the answer to :data:`LIST_NODES`.

    Examples
    --------
    >>> parse_partitions("short*|up|8|8192|1:00:00|idle|10.0.0.1")[0].most_seconds
    3600.0
    """
    nodes: dict[str, list[Node]] = {}
    most: dict[str, float] = {}
    default = ""
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 7 or fields[1] != "up":
            continue
        name = fields[0].rstrip("*")
        default = name if fields[0].endswith("*") else default
        most[name] = parse_duration(fields[4])
        found = nodes.setdefault(name, [])
        if not fields[5].lower().startswith(UNUSABLE):
            cores, mebibytes = (int(re.sub(r"\D", "", field) or 0) for field in fields[2:4])
            found.append(Node(fields[6], cores, mebibytes * MEBIBYTE))
    return tuple(
        Partition(name, tuple(found), most[name], name == default) for name, found in nodes.items()
    )


def parse_duration(text: str) -> float:
    """Return a duration as SLURM writes it in seconds; none at all is for ever.

    Examples
    --------
    >>> [parse_duration(text) for text in ("1-12:00:00", "2:30:00", "5:30", "90", "infinite")]
    [129600.0, 9000.0, 330.0, 5400.0, inf]
    """
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text.strip())
    if match is None:
        return inf
    days, *parts = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    if days is not None:
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, (minutes, seconds) = 0, (*numbers, 0)[:2]
    return float(((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds)


def format_duration(seconds: float) -> str:
    """Return a duration as SLURM reads it.

    Examples
    --------
    >>> format_duration(129601)
    '1-12:00:01'
    """
    minutes, second = divmod(int(-(-seconds // 1)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}-{hour:02}:{minute:02}:{second:02}"


def choose_partition(
    partitions: Sequence[Partition],
    memory_bytes: int = 0,
    *,
    cores: int = 1,
    walltime_seconds: float = 0.0,
) -> Partition:
    """Return the partition with the smallest node on which such a job can run.

    Without a need for memory it is the partition that the cluster names as its default.

    Parameters
    ----------
    partitions
        Those there are.
    memory_bytes, cores, walltime_seconds
        What one job needs.

    Examples
    --------
    >>> small = Partition("8GB", (Node("a", 8, 8 * 2**30),))
    >>> large = Partition("16GBXL", (Node("b", 8, 16 * 2**30),))
    >>> [choose_partition([large, small], gb * 10**9).name for gb in (1, 7, 9, 15)]
    ['8GB', '8GB', '16GBXL', '16GBXL']
    """
    usable = [p for p in partitions if p.most_seconds >= walltime_seconds]
    ranked = []
    for order, partition in enumerate(usable):
        fit = partition.list_sufficient(memory_bytes, cores)
        if fit:
            size = fit[0].memory_bytes if memory_bytes else 0
            ranked.append((size, not partition.is_default, -len(fit), order, partition))
    if not ranked:
        raise InputError(_explain_refusal(partitions, memory_bytes, cores, walltime_seconds))
    return min(ranked)[-1]


def find_partition(partitions: Iterable[Partition], name: str) -> Partition:
    """Return the partition of a name."""
    listed = list(partitions)
    for partition in listed:
        if partition.name == name:
            return partition
    names = ", ".join(repr(partition.name) for partition in listed) or "none"
    raise InputError(f"There is no partition {name!r} here that is up. There are: {names}.")


def _explain_refusal(
    partitions: Sequence[Partition], memory_bytes: int, cores: int, walltime_seconds: float
) -> str:
    nodes = [(node, partition) for partition in partitions for node in partition.nodes]
    if not nodes:
        return "No partition of this cluster is up with a node that can run something; see sinfo."
    largest, where = max(nodes, key=lambda pair: (pair[0].memory_bytes, pair[0].cores))
    needs = [format_bytes(memory_bytes)] if memory_bytes else []
    needs.append(format_count(cores, "core"))
    if walltime_seconds:
        needs.append(format_seconds(walltime_seconds))
    limit = where.most_seconds
    hours = "" if limit == inf else f", for at most {format_seconds(limit)}"
    return (
        f"No partition gives {' and '.join(needs)} to one job: the largest, {where.name!r}, has "
        f"nodes of {format_bytes(largest.memory_bytes)} and {format_count(largest.cores, 'core')}"
        f"{hours}."
    )
