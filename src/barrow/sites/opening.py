"""Open a cluster, whatever kind of place is meant."""

import os
from collections.abc import Mapping
from typing import Any

from barrow.errors import InputError
from barrow.sites.attached import attach, find_address, find_live_client, is_address
from barrow.sites.cluster import Cluster
from barrow.sites.local import start_local


def open_cluster(
    where: Any = None,
    *,
    workers: int | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    resources: Mapping[str, float] | None = None,
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
        What this machine has for tasks that ask for it; one of each, if not given.
    """
    sizes = {"workers": workers, "threads": threads, "memory": memory, "resources": resources}
    given = [f"{name}={value!r}" for name, value in sizes.items() if value is not None]
    if where is None and not given:
        # Somebody who asks for a size wants new workers.
        where = find_live_client() or find_address()
    if where is None or where == "local":
        return start_local(workers, threads, memory, resources)
    if isinstance(where, str) and not is_address(where) and not os.path.isfile(where):
        raise InputError(
            f"{where!r} is no place to run. Choose 'local', an address such as "
            "'tls://10.0.0.1:8786', the path of a scheduler file, a distributed.Client "
            "or a Dask cluster."
        )
    if given:
        raise InputError(
            f"{', '.join(given)} cannot be set on a cluster that is already up.\n"
            "Leave it out, or open 'local' for new workers."
        )
    return attach(where)
