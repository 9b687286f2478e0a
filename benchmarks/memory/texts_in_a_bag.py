import dask.bag
from dask.distributed import Client, LocalCluster


def make(number):
    return [f"{number}-{n}" * 5 for n in range(400_000)]


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c, Client(c):
        words = dask.bag.from_sequence(range(8), npartitions=8).map(make).flatten().persist()
        print(words.map(len).sum().compute())
