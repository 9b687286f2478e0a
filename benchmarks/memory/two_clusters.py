import dask.array as da
from dask.distributed import Client, LocalCluster

if __name__ == "__main__":
    for size in (3000, 8000):
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as c, Client(c):
            x = da.random.random((size, size), chunks=1000).persist()
            print(float(x.std().compute()))
