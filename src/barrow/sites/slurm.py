"""Open a cluster whose workers are jobs of SLURM."""

import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal

from barrow.errors import ClusterError, InputError
from barrow.model.step import check_resources
from barrow.places import cache_folder
from barrow.sites.asked import check_count, parse_memory
from barrow.sites.cluster import Cluster
from barrow.sites.environment import list_search_path, make_environment
from barrow.sites.jobs import JobRequest, find_resources
from barrow.sites.partitions import (
    LIST_NODES,
    Node,
    Partition,
    choose_partition,
    find_partition,
    parse_duration,
    parse_partitions,
)
from barrow.sites.security import make_credentials, remove_credentials, write_credentials
from barrow.sites.slurm_commands import COMMAND_SECONDS, Slurm, clean_environment

DEFAULT_JOBS = 8
MOST_JOBS = 100
"""As many are asked for at most, if their number follows the work."""
WAIT_SECONDS = 360.0
OLD_SECONDS = 7 * 24 * 3600.0
"""Folders of clusters as old as this, with what lost jobs have written, are removed."""

# Waits for the end of the client, however that comes about, and cancels what it has left in
# the queue. Several times, since a job may just be on its way into the queue.
WARDEN = """
trap '' HUP INT TERM
read -r word && exit 0
rm -f "$2"/tls-*.pem
for pause in 0 2 10 20; do
    sleep $pause
    scancel --quiet --user="$(id -un)" --name="$1"
done
"""


@dataclass(frozen=True)
class SlurmOptions:
    """What can be asked of a cluster of jobs."""

    partition: str | None = None
    jobs: int | Literal["auto"] = DEFAULT_JOBS
    cores: int = 1
    memory: str | int | None = None
    resources: Mapping[str, float] | None = None
    walltime: str | float | None = None
    account: str | None = None
    timeout: float = WAIT_SECONDS
    interface: str | None = None
    setup: Sequence[str] = ()
    sbatch: Sequence[str] = ()
    folder: str | os.PathLike[str] | None = None
    quiet: bool = False


def start_slurm(options: SlurmOptions, *, death_seconds: float | None = None) -> Cluster:
    """Ask for jobs, and wait until the first worker is there; more join as they come.

    Parameters
    ----------
    options
        What is asked for.
    death_seconds
        How long a worker that does not find its scheduler waits before its job ends.
    """
    check_options(options)
    walltime_seconds = parse_walltime(options.walltime)
    memory_bytes = parse_memory(options.memory)
    partitions = read_partitions()
    partition, node = choose_place(options, partitions, memory_bytes, walltime_seconds)
    if memory_bytes is None:
        memory_bytes = node.share_bytes * options.cores
    from distributed import Client

    from barrow.sites.job_pool import DEATH_SECONDS, JobPool

    name = f"barrow-{uuid.uuid4().hex[:12]}"
    folder = make_folder(options.folder, name)
    warden = None
    pool = None

    def finish() -> None:
        try:
            if pool is not None:
                pool.close(timeout=30)
        finally:
            if warden is not None:
                _dismiss(warden)
            remove_credentials(folder)
            if options.folder is None and not (pool is not None and pool.losses):
                shutil.rmtree(folder, ignore_errors=True)

    try:
        credentials = make_credentials()
        write_credentials(credentials, folder)
        search_path = list_search_path(sys.path, os.getcwd())
        request = JobRequest(
            name,
            partition.name,
            options.cores,
            memory_bytes,
            folder,
            walltime_seconds,
            options.account,
            tuple(options.sbatch),
            tuple(options.setup),
        )
        warden = _start_warden(name, folder)
        pool = JobPool(
            request,
            Slurm(os.environ),
            1 if options.jobs == "auto" else options.jobs,
            host=find_host(partition.nodes, options.interface),
            credentials=credentials,
            environment=make_environment(
                {}, search_path=search_path, library_threads=1, tasks=options.cores
            ),
            pythonpath=os.environ.get("PYTHONPATH"),
            timeout=options.timeout,
            most_jobs=min(MOST_JOBS, partition.count_places(memory_bytes, options.cores)),
            death_seconds=death_seconds or DEATH_SECONDS,
            is_quiet=options.quiet,
            resources={
                **find_resources(options.sbatch),
                **check_resources(options.resources),
            },
        )
        cluster = Cluster(Client(pool), manager=pool, is_own_client=True, finish=finish)
    except BaseException:
        finish()
        raise
    try:
        if not options.quiet:
            _tell_dashboard(cluster)
        if options.jobs == "auto":
            cluster.adapt()
        cluster.wait(1, timeout=options.timeout)
    except BaseException:
        cluster.close()
        raise
    return cluster


def check_options(options: SlurmOptions) -> None:
    """Refuse what cannot be asked for."""
    if options.jobs != "auto":
        check_count("jobs", options.jobs, also="'auto'")
    check_count("cores", options.cores)
    for name in ("setup", "sbatch"):
        value = getattr(options, name)
        if isinstance(value, str) or any("\n" in line for line in value):
            raise InputError(f"{name}={value!r} cannot be used. Give a list of single lines.")


def read_partitions() -> tuple[Partition, ...]:
    """Return the partitions of the SLURM cluster to which this machine belongs."""
    try:
        done = subprocess.run(
            LIST_NODES,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            env=clean_environment(os.environ),
        )
    except FileNotFoundError:
        raise InputError(
            "There is no SLURM here: the command sinfo is not found. Use 'local', or log in to "
            "a machine from which jobs can be submitted."
        ) from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"sinfo gave no answer within {COMMAND_SECONDS:.0f} s.") from None
    if done.returncode:
        raise ClusterError(f"SLURM does not answer: {done.stderr.strip()}")
    return parse_partitions(done.stdout)


def choose_place(
    options: SlurmOptions,
    partitions: Sequence[Partition],
    memory_bytes: int | None,
    walltime_seconds: float | None,
) -> tuple[Partition, Node]:
    """Return the partition for jobs, and the smallest of its nodes that will do."""
    if options.partition is not None:
        partitions = [find_partition(partitions, options.partition)]
    chosen = choose_partition(
        partitions,
        memory_bytes or 0,
        cores=options.cores,
        walltime_seconds=walltime_seconds or 0.0,
    )
    return chosen, chosen.list_sufficient(memory_bytes or 0, options.cores)[0]


def parse_walltime(walltime: str | float | None) -> float | None:
    """Return a walltime in seconds.

    Examples
    --------
    >>> parse_walltime("2h"), parse_walltime("1:30:00"), parse_walltime(90), parse_walltime(None)
    (7200.0, 5400.0, 90.0, None)
    """
    if walltime is None:
        return None
    seconds = inf
    if isinstance(walltime, str) and (":" in walltime or "-" in walltime):
        seconds = parse_duration(walltime)
    else:
        from dask.utils import parse_timedelta

        with suppress(ValueError, TypeError, KeyError):
            seconds = float(parse_timedelta(walltime))
    if not 0 < seconds < inf:
        raise InputError(
            f"walltime={walltime!r} is no duration. Write seconds, '2h', or '1:30:00'."
        )
    return seconds


def find_host(nodes: Iterable[Node], interface: str | None = None) -> str:
    """Return the address of this machine by which nodes can reach it.

    Parameters
    ----------
    nodes
        Those of the partition: the address from which the first of them is reached is taken.
    interface
        Name of a network card to use instead.
    """
    from distributed.utils import get_ip, get_ip_interface

    if interface is not None:
        try:
            return str(get_ip_interface(interface))
        except ValueError as error:
            raise InputError(f"interface={interface!r} cannot be used: {error}") from None
    for node in nodes:
        with suppress(OSError):
            family, kind, *_, address = socket.getaddrinfo(node.address, 9, type=socket.SOCK_DGRAM)[
                0
            ]
            # Nothing is sent: this only asks the system which way it would go.
            with socket.socket(family, kind) as asking:
                asking.connect(address)
                return str(asking.getsockname()[0])
    return str(get_ip())


def make_folder(given: str | os.PathLike[str] | None, name: str) -> Path:
    """Make a folder for credentials and logs that jobs can read and others cannot."""
    parent = cache_folder() / "clusters" if given is None else Path(given)
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if given is None:
        _remove_old(parent)
    folder = parent.resolve() / name
    folder.mkdir(mode=0o700)
    return folder


def _remove_old(parent: Path) -> None:
    for path in parent.glob("barrow-*"):
        with suppress(OSError):
            status = path.lstat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > OLD_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _start_warden(name: str, folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        ["sh", "-c", WARDEN, "barrow-warden", name, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=clean_environment(os.environ),
        start_new_session=True,
    )


def _dismiss(warden: "subprocess.Popen[bytes]") -> None:
    with suppress(OSError, subprocess.TimeoutExpired):
        warden.communicate(b"done\n", timeout=10)


def _tell_dashboard(cluster: Cluster) -> None:
    link = cluster.dashboard_link
    if link is None:
        return
    port = link.rpartition(":")[2].partition("/")[0]
    user = os.environ.get("USER", "you")
    print(
        f"Dashboard: {link}, for this machine only. To see it on yours:\n"
        f"  ssh -N -L {port}:127.0.0.1:{port} {user}@{socket.gethostname()}",
        file=sys.stderr,
    )
