"""Open a cluster, whatever kind of place is meant."""

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from barrow.errors import InputError
from barrow.sites.attached import attach, find_live_client, find_place, is_address
from barrow.sites.cluster import Cluster
from barrow.sites.local import start_local
from barrow.sites.slurm import SlurmOptions, start_slurm


def open_cluster(
    where: Any = None,
    *,
    workers: int | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    resources: Mapping[str, float] | None = None,
    **slurm: Any,
) -> Cluster:
    """Return a cluster that is ready.

    Parameters
    ----------
    where
        Nothing: the Dask cluster in use, else new workers on this machine. ``"local"``:
        new workers in any case. Or a ``distributed.Client``, a Dask cluster object, an
        address, or the path of a scheduler file, to use what is already up.
    workers, threads, memory
        How many new workers, and what each may use. Sized to this machine, if not
        given. Workers that are already up cannot be changed.
    resources
        What this machine, or each job, has for tasks that ask for it. If not given, this
        machine has one of each, and a job what it asks SLURM for.
    slurm
        Fields of :class:`SlurmOptions`, for ``"slurm"`` only.
    """
    sizes: dict[str, Any] = {
        "workers": workers,
        "threads": threads,
        "memory": memory,
        "resources": resources,
    }
    if where == "slurm":
        return start_slurm(make_options(slurm, **sizes))
    if slurm:
        check_names(slurm)
        raise InputError(
            f"{', '.join(f'{name}=' for name in slurm)} can only be asked of SLURM: write "
            "barrow.cluster('slurm', ...)."
        )
    given = [f"{name}={value!r}" for name, value in sizes.items() if value is not None]
    if where is None and not given:
        # Somebody who asks for a size wants new workers.
        where = find_live_client() or find_place()
    if where is None or where == "local":
        return start_local(workers, threads, memory, resources)
    if isinstance(where, str) and not is_address(where) and not os.path.isfile(where):
        raise InputError(
            f"{where!r} is no place to run. Choose 'local', 'slurm', an address such as "
            "'tls://10.0.0.1:8786', the path of a scheduler file, a distributed.Client "
            "or a Dask cluster."
        )
    if given:
        raise InputError(
            f"{', '.join(given)} cannot be set on a cluster that is already up.\n"
            "Leave it out, or open 'local' for new workers."
        )
    return attach(where)


def make_options(
    given: Mapping[str, Any],
    *,
    workers: int | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    resources: Mapping[str, float] | None = None,
) -> SlurmOptions:
    """Return what is asked of SLURM; a name that is not known is an error.

    Examples
    --------
    >>> make_options({"jobs": 4, "walltime": "2h"}, memory="3GB").jobs
    4
    """
    check_names(given)
    for name, value, instead in (("workers", workers, "jobs"), ("threads", threads, "cores")):
        if value is not None:
            raise InputError(f"{name}={value!r} is not used for SLURM: write {instead}={value!r}.")
    return SlurmOptions(**given, memory=memory, resources=resources)


def check_names(given: Mapping[str, Any]) -> None:
    """Refuse options that do not exist."""
    known = [field.name for field in fields(SlurmOptions)]
    for name in given:
        if name not in known:
            raise TypeError(f"cluster() has no argument {name!r}. There are: {', '.join(known)}.")
