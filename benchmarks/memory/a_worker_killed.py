import os
import signal
import time

import dask.array as da
from dask.distributed import Client, LocalCluster

if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        Client(c) as k,
    ):
        x = da.random.random((6000, 6000), chunks=1000).persist()
        time.sleep(1)
        victim = next(iter(k.scheduler_info(n_workers=-1)["workers"].values()))["id"]
        pid = k.run(os.getpid)
        os.kill(next(iter(pid.values())), signal.SIGKILL)
        print(float(x.mean().compute()), victim)
