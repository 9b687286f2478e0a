import numpy as np
from dask.distributed import Client, LocalCluster

kept = []


def leak(number):
    kept.append(np.ones(4_000_000))
    return number


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        Client(c) as k,
    ):
        print(sum(k.gather(k.map(leak, range(30)))))
