"""A hundred thousand chunks are no heavier than a hundred."""

import json
import subprocess
import sys

import pytest

CODE = """
import json, resource, sqlite3, sys, time
from dataclasses import replace
import numpy as np, barrow
engine, count = sys.argv[1], int(sys.argv[2])
cluster = barrow.cluster("local", workers=2, threads=1, memory="1GB") if engine == "dask" else None
data = np.zeros((count, 2), "u1")
began = time.time()
plan = barrow.plan(lambda x: x + 1, data, quiet=True)
run = barrow.run(replace(plan.with_chunks(dim_0=1), engine=engine, threads=2))
assert (run.result == 1).all()
record = sqlite3.connect(run.folder / "record.sqlite")
first, = record.execute("select min(started) from task").fetchone()
if cluster: cluster.close()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([run.metrics["chunks"], first - began, peak]))
"""


def measure(engine, count):
    output = subprocess.check_output([sys.executable, "-c", CODE, engine, str(count)], text=True)
    return json.loads(output)


@pytest.mark.parametrize("engine", ["inline", "threads", "dask"])
def test_a_hundred_thousand_chunks_start_at_once_and_take_no_more_memory(engine):
    few_chunks, _, few_bytes = measure(engine, 100)
    many_chunks, first_seconds, many_bytes = measure(engine, 100_000)
    assert (few_chunks, many_chunks) == (100, 100_000)
    assert first_seconds < 5  # whatever else the machine does; listing them all would take longer
    assert many_bytes - few_bytes < 50e6
