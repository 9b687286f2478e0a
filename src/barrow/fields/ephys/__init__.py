"""Electrophysiology: spectra, filters and connectivity of trials × channels.

The calls, their arguments and their numbers are those of Syncopy and FieldTrip. Data may
be larger than memory; the work is cut over trials and channels as barrow plans it.
"""

from barrow.fields.ephys import synthdata
from barrow.fields.ephys.calls.connectivityanalysis import connectivityanalysis
from barrow.fields.ephys.calls.freqanalysis import freqanalysis
from barrow.fields.ephys.calls.preprocessing import preprocessing
from barrow.fields.ephys.calls.resampledata import resampledata
from barrow.fields.ephys.calls.timelockanalysis import timelockanalysis
from barrow.fields.ephys.calls.viewing import multipanelplot, selectdata, show, singlepanelplot
from barrow.fields.ephys.clusters import cluster_cleanup, esi_cluster_setup
from barrow.fields.ephys.exchanging import (
    from_mne,
    from_neo,
    from_nwb,
    from_xarray,
    to_mne,
    to_neo,
    to_nwb,
)
from barrow.fields.ephys.files import load, save
from barrow.fields.ephys.kinds import AnalogData, CrossSpectralData, SpectralData, TimeLockData
from barrow.fields.ephys.settings import StructDict, get_defaults
from barrow.fields.ephys.spikes import SpikeData

__all__ = [
    "AnalogData",
    "CrossSpectralData",
    "SpectralData",
    "SpikeData",
    "StructDict",
    "TimeLockData",
    "cluster_cleanup",
    "connectivityanalysis",
    "esi_cluster_setup",
    "freqanalysis",
    "from_mne",
    "from_neo",
    "from_nwb",
    "from_xarray",
    "get_defaults",
    "load",
    "multipanelplot",
    "preprocessing",
    "resampledata",
    "save",
    "selectdata",
    "show",
    "singlepanelplot",
    "synthdata",
    "timelockanalysis",
    "to_mne",
    "to_neo",
    "to_nwb",
]
