"""Use a cluster that somebody else has started."""

import sys

import dask.array as da
from distributed import Client

if __name__ == "__main__":
    with Client(scheduler_file=sys.argv[1]) as client:
        client.wait_for_workers(2, timeout=60)
        x = da.random.random((4000, 4000), chunks=1000)
        print(float((x @ x.T).mean().compute()))
