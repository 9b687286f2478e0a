"""Clusters under the names that scripts of the ESI use."""

from typing import Any

from barrow import api
from barrow.errors import InputError

# By the address of the scheduler: what was opened here, and is closed by its name.
_opened: dict[str, Any] = {}


def esi_cluster_setup(
    partition: str | None = None,
    n_jobs: int = 2,
    mem_per_job: str | int | None = None,
    timeout: float = 360,
    interactive: bool = False,
    job_extra: tuple[str, ...] | list[str] = (),
    **options: Any,
) -> Any:
    """Ask SLURM for jobs, and return the Dask client that all later calls use.

    A thin name for ``barrow.cluster("slurm", partition=..., jobs=...)``.

    Parameters
    ----------
    partition
        Where the jobs run; None or ``"auto"`` for the smallest with room for them.
    n_jobs
        How many, each a worker.
    mem_per_job
        Memory of each, for example ``"4GB"``; None or ``"auto"`` for its share of a node.
    timeout
        Seconds to wait for the first worker; more join as they come.
    interactive
        Taken for the sake of old scripts: nothing is ever asked.
    job_extra
        Further options of ``sbatch``.
    options
        As for :func:`barrow.cluster`: ``walltime``, ``account``, ``setup``, ``quiet`` and so on.
    """
    if not isinstance(interactive, bool):
        raise InputError(f"interactive={interactive!r}: use True or False.")
    cluster = api.cluster(
        "slurm",
        partition=None if partition == "auto" else partition,
        jobs=n_jobs,
        memory=None if mem_per_job == "auto" else mem_per_job,
        timeout=timeout,
        sbatch=tuple(job_extra),
        **options,
    )
    _opened[cluster.client.scheduler.address] = cluster
    return cluster.client


def cluster_cleanup(client: Any = None) -> None:
    """End the jobs of a client from :func:`esi_cluster_setup`, and close it.

    Parameters
    ----------
    client
        By default all that were opened here. A client of any other cluster is closed
        together with the cluster that it has started, if it has.
    """
    if client is None:
        closing = list(_opened)
    elif getattr(client, "scheduler", None) is None:
        raise InputError(f"{client!r} is no Dask client, or it is closed already.")
    else:
        closing = [client.scheduler.address]
    for address in closing:
        cluster = _opened.pop(address, None)
        if cluster is not None:
            cluster.close()
        else:
            if client.cluster is not None:
                client.cluster.close()
            client.close()
