"""Whether this process is a worker of barrow's own, running one task at a time.

In such a process marks that belong to the whole process may be set back; in all
others they belong to somebody else.
"""

import os

_VARIABLE = "BARROW_WORKER"


def claim_process() -> None:
    """Say that this process is ours."""
    # With its number, so that programs which a task starts are not taken for workers.
    os.environ[_VARIABLE] = str(os.getpid())


def is_own_process() -> bool:
    """Return whether this process is ours."""
    return os.environ.get(_VARIABLE) == str(os.getpid())
