"""Tell whether workers run on this machine, so that they can share its memory."""

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barrow.sites.workers import WorkerInfo

# Two processes that agree on all three can share memory. A loopback address alone does
# not tell: it may be a tunnel. Functions of the standard library, since workers of
# others may not have barrow.
IDENTIFY_HOST: tuple[tuple[Any, ...], ...] = (
    (platform.node,),
    (Path.read_text, Path("/proc/sys/kernel/random/boot_id")),
    (os.readlink, "/proc/self/ns/pid"),
)


def is_on_this_machine(client: Any, workers: Iterable[WorkerInfo]) -> bool:
    """Return whether all workers, and there are some, run on the machine of this process."""
    one_of_each_host = {worker.host: worker.address for worker in workers}
    if not one_of_each_host or not set(one_of_each_host) <= _list_own_hosts():
        return False
    for function, *arguments in IDENTIFY_HOST:
        try:
            own = function(*arguments)
        except OSError:
            # Not Linux: the name of the host has to do.
            continue
        answers = client.run(
            function, *arguments, workers=[*one_of_each_host.values()], on_error="return"
        )
        if any(answer != own for answer in answers.values()):
            return False
    return True


def _list_own_hosts() -> set[str]:
    import psutil

    addresses = {address.address for card in psutil.net_if_addrs().values() for address in card}
    return {"127.0.0.1", "::1", "localhost", platform.node(), *addresses}
