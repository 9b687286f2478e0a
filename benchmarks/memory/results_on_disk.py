import dask.array as da
from dask.distributed import Client, LocalCluster

if __name__ == "__main__":
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "memory_limit": "600MB",
        "dashboard_address": None,
    }
    with LocalCluster(**options) as c, Client(c):
        x = da.random.random((9000, 8000), chunks=1000).persist()
        print(float((x + 1).sum().compute()))
