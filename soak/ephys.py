"""Do the scripts of Syncopy's page on parallel processing run at their full size?

Their import line is another one, and the names of the site are those of the SLURM that is
started on this machine; all else stands as it does there.

    python soak/ephys.py [--workers 8]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "tests" / "slurm"
MOST_SECONDS = 900

LOCAL = """
import dask.distributed as dd

cluster = dd.LocalCluster(n_workers=WORKERS)
client = dd.Client(cluster)

from barrow import ephys as spy

data = spy.synthdata.white_noise(nTrials=5_000, nChannels=32)
spec = spy.freqanalysis(data)
assert spec.data.shape == (5000, 1, 501, 32)
"""

JOBS = """
import dask.distributed as dd
import dask_jobqueue as dj

slurm_wdir = "WORKDIR"
n_jobs = WORKERS
reqMem = 1
queue = '8GB'

cluster = dj.SLURMCluster(cores=1, memory=f'{reqMem} GB', processes=1,
                          local_directory=slurm_wdir,
                          queue=queue)

cluster.scale(n_jobs)
client = dd.Client(cluster)
"""

FILTER = """
from barrow import ephys as spy

data = spy.synthdata.white_noise(nTrials=500, nSamples=10_000, nChannels=10)
spec = spy.preprocessing(data, freq=[20, 40], filter_type='bp')
assert spec.data.shape == (5_000_000, 10)
"""

BY_CHANNELS = """
data = spy.synthdata.white_noise(nTrials=100, nSamples=1000, nChannels=200)
spec = spy.freqanalysis(data,
                        method="mtmfft",
                        foilim=[1, 150],
                        tapsmofrq=10,
                        parallel=True,
                        chan_per_worker=40)
assert spec.data.shape == (100, 1, 150, 200)
"""

SETUP = """
from barrow import ephys as spy

spyClient = spy.esi_cluster_setup(partition="16GBXL", n_jobs=WORKERS)
"""

# As a site sets it for all its users: here everything stays on this machine.
SITE = {
    "DASK_JOBQUEUE__SLURM__INTERFACE": "lo",
    "DASK_JOBQUEUE__SLURM__SCHEDULER_OPTIONS": "{'dashboard_address': '127.0.0.1:0'}",
}
CASES = {
    "local cluster, 5000 trials": LOCAL + BY_CHANNELS,
    "cluster of jobs, band-pass": JOBS + FILTER + "client.close(); cluster.close()",
    "set-up of the ESI, band-pass": SETUP + FILTER + "spy.cluster_cleanup()",
}


def run(script: str, environ: dict[str, str]) -> float:
    """Run a script in a process of its own, and return its seconds."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--only", default="", help="a part of the name of the cases to run")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    install = ["--install"] if os.getuid() == 0 and shutil.which("apt-get") else []
    results: dict[str, object] = {}
    try:
        if subprocess.run([SCRIPTS / "slurm-up", *install, folder], stdout=2).returncode:
            print("SLURM could not be started: nothing was tried.")
            return 1
        conf = {"SLURM_CONF": f"{folder}/slurm.conf", "BARROW_CACHE": f"{folder}/cache"}
        conf["DASK_JOBQUEUE__SLURM__LOG_DIRECTORY"] = str(folder)
        for name, script in CASES.items():
            if given.only not in name:
                continue
            script = script.replace("WORKERS", str(given.workers)).replace("WORKDIR", str(folder))
            try:
                results[name] = round(run(script, {**os.environ, **conf, **SITE}), 1)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                results[name] = str(error)
            print(f"{name}: {results[name]}", flush=True)
    finally:
        subprocess.run([SCRIPTS / "slurm-down", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(results))
    return int(any(isinstance(value, str) for value in results.values()))


if __name__ == "__main__":
    sys.exit(main())
