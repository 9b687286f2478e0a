import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c, Client(c):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"key": rng.integers(0, 500, 3_000_000), "x": rng.random(3_000_000)})
        parts = dd.from_pandas(frame, npartitions=12)
        print(parts.shuffle("key").groupby("key").x.mean().compute().sum())
