"""Start workers as jobs, by dask-jobqueue; its jobs are processes of this machine."""

import sys

import dask.array as da
from dask_jobqueue.local import LocalCluster
from distributed import Client

if __name__ == "__main__":
    options = {
        "cores": 1,
        "processes": 1,
        "memory": "2GB",
        "local_directory": sys.argv[1],
        "scheduler_options": {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"},
    }
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=60)
        x = da.random.random((4000, 4000), chunks=1000)
        print(float((x @ x.T).mean().compute()))
