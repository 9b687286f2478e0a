"""Run one case of benchmarks/ephys.py with the real Syncopy, in its own environment.

python syncopy_run.py CASE.json INPUT.spy OUTPUT.spy WORKERS
"""

import json
import os
import resource
import sys
import time

import syncopy as spy


def cpu_seconds():
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)


def main(case, source, target, workers):
    case, workers = json.loads(case), int(workers)
    client = None
    if workers:
        from dask.distributed import Client, LocalCluster

        client = Client(LocalCluster(n_workers=workers, threads_per_worker=1))
    began, cpu = time.perf_counter(), cpu_seconds()
    data = spy.load(source)
    found = getattr(spy, case["call"])(data, parallel=bool(workers), **case["kwargs"])
    found.save(container=target)
    wall = time.perf_counter() - began
    if client is not None:
        # The CPU of workers is known when they have ended.
        client.cluster.close()
        client.close()
    took = {"wall": wall, "cpu": cpu_seconds() - cpu}
    sys.stdout.flush()
    print("TOOK " + json.dumps(took), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
