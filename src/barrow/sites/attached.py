"""Use a Dask cluster that is already up.

Only the connection is ours: closing it leaves the cluster and other people's
clients as they were.
"""

import ipaddress
import json
import os
import re
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from barrow.errors import ClusterError, InputError
from barrow.sites.announcing import find_credentials
from barrow.sites.cluster import Cluster
from barrow.sites.security import read_security
from barrow.units import format_seconds

CONNECT_SECONDS = 6.0


def attach(where: Any, *, timeout: float = CONNECT_SECONDS) -> Cluster:
    """Return a handle for a cluster that is already up.

    Parameters
    ----------
    where
        A ``distributed.Client``, a Dask cluster object, an address such as
        ``"tls://10.0.0.1:8786"``, or the path of a scheduler file.
    timeout
        Seconds to wait for the scheduler's answer.
    """
    if is_client(where):
        return Cluster(_check_client(where), manager=where.cluster)
    if hasattr(where, "scheduler_address"):
        if getattr(where, "asynchronous", False):
            raise InputError(
                f"{where!r} is asynchronous. Start it with asynchronous=False to use it here."
            )
        return Cluster(
            _connect(where, str(where.scheduler_address), timeout),
            manager=where,
            is_own_client=True,
        )
    if isinstance(where, (str, os.PathLike)):
        return Cluster(_open(where, timeout), is_own_client=True)
    raise InputError(
        f"{where!r} is no cluster. Give a distributed.Client, a Dask cluster, an address "
        "such as 'tcp://127.0.0.1:8786', or the path of a scheduler file."
    )


def find_client() -> Any | None:
    """Return Dask's current client, or one for the address in Dask's configuration.

    A client that is closed or asynchronous does not count. Dask's ``distributed`` is
    not imported only to learn that nobody uses it.
    """
    client = find_live_client()
    if client is not None:
        return client
    place = find_place()
    return None if place is None else _open(place, CONNECT_SECONDS)


def find_live_client() -> Any | None:
    """Return the current client of this process, if there is one and it is open."""
    client = _get_current()
    is_usable = client is not None and client.status == "running" and not client.asynchronous
    return client if is_usable else None


def find_place() -> str | None:
    """Return a scheduler's address, or its file, from the environment or Dask's configuration.

    ``DASK_SCHEDULER_ADDRESS`` or ``scheduler-address`` say the one; ``DASK_SCHEDULER_FILE``
    or ``scheduler-file`` the other.
    """
    from dask import config

    for name in ("scheduler-address", "scheduler-file"):
        variable = f"DASK_{name.upper().replace('-', '_')}"
        if place := os.environ.get(variable) or config.get(name, None):
            return str(place)
    return None


def read_scheduler_file(path: Path) -> str:
    """Return the address in a file that a scheduler has written."""
    if not path.is_file():
        raise InputError(f"There is no scheduler file at {str(path)!r}.")
    try:
        return str(json.loads(path.read_text())["address"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{str(path)!r} is no scheduler file: {error!r}.") from None


def is_address(text: str) -> bool:
    """Tell whether a text is the address of a scheduler.

    Examples
    --------
    >>> is_address("tcp://10.0.0.1:8786"), is_address("node7:8786"), is_address("local")
    (True, True, False)
    """
    return re.fullmatch(r"\w+://\S+|[\w.-]+:\d+", text) is not None


def is_client(where: Any) -> bool:
    """Tell whether something is a Dask client, without importing Dask."""
    kind = getattr(sys.modules.get("distributed"), "Client", None)
    return kind is not None and isinstance(where, kind)


def is_open_address(address: str) -> bool:
    """Tell whether others on the network can reach an address and need no certificate.

    Examples
    --------
    >>> is_open_address("tcp://10.0.0.1:8786")
    True
    >>> is_open_address("tcp://127.0.0.1:8786"), is_open_address("tls://10.0.0.1:8786")
    (False, False)
    """
    protocol, _, rest = address.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    if protocol not in ("tcp", "ws"):
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _get_current() -> Any | None:
    kind = getattr(sys.modules.get("distributed"), "Client", None)
    try:
        return None if kind is None else kind.current()
    except ValueError:
        return None


def _check_client(client: Any) -> Any:
    if client.asynchronous:
        raise InputError(
            f"{client!r} is asynchronous. Make one with asynchronous=False to use it here."
        )
    if client.status != "running":
        raise InputError(f"This client is {client.status}. Make a new one with distributed.Client.")
    return client


def _open(where: str | os.PathLike[str], timeout: float) -> Any:
    """Return a client for an address, or for what a scheduler file says."""
    if isinstance(where, str) and is_address(where):
        address = where if "://" in where else f"tcp://{where}"
        name, file = address, None
    else:
        file = Path(where)
        address = read_scheduler_file(file)
        name = f"{address}, as {where} says,"
    _warn_if_open(address)
    return _connect(address, name, timeout, _find_security(address, file))


def _connect(target: Any, name: str, timeout: float, security: Any = None) -> Any:
    from distributed import Client

    before = _get_current()
    try:
        return Client(target, timeout=timeout, security=security)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        # Beside a timeout: an unknown protocol, a missing certificate, a broken file.
        # Some of these leave a client behind that is current and will never connect.
        left = _get_current()
        if left is not None and left is not before:
            left.close()
        raise ClusterError(
            f"Found no scheduler at {name} within {format_seconds(timeout)}: {error}\n"
            "See whether it runs and whether this machine may reach it. A scheduler with "
            "certificates needs a client of its own: attach(Client(address, security=...))."
        ) from error


def _find_security(address: str, file: Path | None) -> Any | None:
    """Return the certificates for a cluster that this user has opened, here or elsewhere."""
    from distributed import SpecCluster

    for cluster in list(getattr(SpecCluster, "_instances", ())):
        if cluster.status.name == "running" and cluster.scheduler_address == address:
            return cluster.security
    folder = find_credentials(address, file)
    return None if folder is None else read_security(folder)


@cache
def _warn_if_open(address: str) -> None:
    if is_open_address(address):
        warnings.warn(
            f"{address} has no encryption: anyone on that network can use the cluster and "
            "run code as you. Start the scheduler with certificates and use tls://.",
            UserWarning,
            stacklevel=4,
        )
