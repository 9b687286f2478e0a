"""Scripts for SLURM as they stand in Syncopy's documentation, with another import line."""

import dask
import numpy as np
import pytest

from barrow import ephys
from barrow.fields.ephys import computing
from barrow.fields.ephys.filters import Filter
from barrow.fields.ephys.preparing import preprocess

JOBQUEUE = """
import dask.distributed as dd
import dask_jobqueue as dj

slurm_wdir = "WORKDIR"
n_jobs = 1
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

data = spy.synthdata.white_noise(nTrials=50, nSamples=10_000, nChannels=10)
spec = spy.preprocessing(data, freq=[20, 40], filter_type='bp')
"""

SETUP = """
from barrow import ephys as spy

spyClient = spy.esi_cluster_setup(partition="16GBXL", n_jobs=1)
"""


@pytest.fixture(autouse=True)
def nothing_is_tiny(monkeypatch):
    """Send to workers what would otherwise be over at once."""
    monkeypatch.setattr(computing, "AT_ONCE_SECONDS", 0)


def check_filtered(names):
    chosen = Filter("but", "bp", (20.0, 40.0), 4, "twopass", 1000.0)
    alone = preprocess(names["data"].trials[17][None], chosen=chosen)[0]
    assert np.array_equal(names["spec"].trials[17], alone)


def test_the_script_for_a_cluster_of_jobs_runs(slurm, tmp_path):
    pytest.importorskip("dask_jobqueue")
    names = {}
    # Where a site has its network card, and what else it sets for all its users.
    site = {
        "interface": "lo",
        "log-directory": str(tmp_path),
        "scheduler-options": {"dashboard_address": "127.0.0.1:0"},
    }
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in site.items()}):
        exec(JOBQUEUE.replace("WORKDIR", str(tmp_path)), names)
    try:
        exec(FILTER, names)
        check_filtered(names)
        assert len(slurm.list_jobs("running")) == 1
    finally:
        ephys.cluster_cleanup(names["client"])
    assert slurm.wait_until(lambda: not slurm.list_jobs())


def test_the_set_up_of_the_esi_runs(slurm, tmp_path, monkeypatch):
    monkeypatch.setenv("BARROW_CACHE", str(tmp_path))
    names = {}
    exec(SETUP, names)
    try:
        assert len(slurm.list_jobs()) == 1
        exec(FILTER, names)
        check_filtered(names)
    finally:
        names["spy"].cluster_cleanup(names["spyClient"])
    assert slurm.wait_until(lambda: not slurm.list_jobs())
    assert names["spyClient"].status == "closed"
