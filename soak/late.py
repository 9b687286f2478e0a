"""What a worker loads before it starts, and takes long to: an environment on a slow disk."""

import time

SECONDS = 7.0


def dask_setup(worker: object) -> None:
    """Called by Dask in a worker that starts."""
    del worker
    time.sleep(SECONDS)
