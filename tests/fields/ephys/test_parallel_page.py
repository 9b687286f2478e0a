"""Scripts as they stand in Syncopy's documentation, with another import line."""

import numpy as np
import pytest
from distributed import Client

from barrow import ephys
from barrow.errors import InputError
from barrow.fields.ephys import computing

LOCAL = """
import dask.distributed as dd

cluster = dd.LocalCluster(n_workers=1)
client = dd.Client(cluster)

from barrow import ephys as spy

data = spy.synthdata.white_noise(nTrials=40, nChannels=32)
spec = spy.freqanalysis(data)
"""

BY_CHANNELS = """
spec = spy.freqanalysis(data,
                        method="mtmfft",
                        foilim=[1, 150],
                        tapsmofrq=10,
                        parallel=True,
                        chan_per_worker=40)
"""


@pytest.fixture(autouse=True)
def nothing_is_tiny(monkeypatch):
    """Send to workers what would otherwise be over at once."""
    monkeypatch.setattr(computing, "AT_ONCE_SECONDS", 0)


@pytest.fixture
def names():
    """What a script defines; its client and cluster are closed afterwards."""
    names = {}
    yield names
    ephys.cluster_cleanup(names["client"])


def test_the_script_for_a_local_cluster_runs(names):
    exec(LOCAL, names)
    spec, data = names["spec"], names["data"]
    assert spec.data.shape == (40, 1, 501, 32)
    alone = ephys.freqanalysis(data.selectdata(trials=[7]), parallel=False)
    assert np.allclose(spec.trials[7], alone.trials[0], rtol=1e-4)


def test_the_call_with_channels_for_each_worker_runs(names):
    client = Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    data = ephys.synthdata.white_noise(nTrials=4, nSamples=1000, nChannels=100, seed=1)
    names |= {"client": client, "spy": ephys, "data": data}
    exec(BY_CHANNELS, names)
    assert names["spec"].data.shape == (4, 1, 150, 100)
    alone = ephys.freqanalysis(data, foilim=[1, 150], tapsmofrq=10, parallel=False)
    assert np.allclose(names["spec"].data, alone.data, rtol=1e-4)


def test_a_client_that_is_closed_cannot_be_cleaned_up():
    with pytest.raises(InputError, match="no Dask client"):
        ephys.cluster_cleanup("client")
