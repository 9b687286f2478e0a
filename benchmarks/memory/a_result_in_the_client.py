import dask.array as da
from dask.distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c, Client(c):
        print(da.random.random((8000, 8000), chunks=2000).compute().nbytes)
