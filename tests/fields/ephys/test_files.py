"""Objects on disk, and those of other libraries."""

import numpy as np
import pytest

from barrow import ephys
from barrow.errors import InputError, OutputError


def make_all(noise):
    return [
        noise,
        ephys.freqanalysis(noise, tapsmofrq=5, keeptapers=True, output="fourier"),
        ephys.connectivityanalysis(noise, method="coh"),
        ephys.timelockanalysis(noise, covariance=True),
    ]


@pytest.mark.parametrize("number", range(4), ids=["analog", "spectral", "cross", "timelock"])
@pytest.mark.parametrize("place", ["kept.spy", "kept.zarr"])
def test_what_is_saved_is_loaded(noise, tmp_path, number, place):
    data = make_all(noise)[number]
    data.save(tmp_path / place)
    found = ephys.load(tmp_path / place)
    assert type(found) is type(data)
    assert np.array_equal(np.asarray(found.data), np.asarray(data.data))
    assert np.array_equal(found.trialdefinition[:, 1:], data.trialdefinition[:, 1:])
    assert found.log.splitlines()[0] == data.log.splitlines()[0] if data.log else True
    for dim in data.dimord[1:]:
        assert np.array_equal(getattr(found, dim), getattr(data, dim))
    if place.endswith("spy") and number == 3:
        assert np.array_equal(found.cov, data.cov)


def test_unequal_trials_are_saved_without_what_lies_between(unequal, tmp_path):
    low = ephys.preprocessing(unequal, filter_type="lp", freq=50)
    low.save(container=tmp_path / "low")
    found = ephys.load(tmp_path / "low.spy")
    assert found.data.shape == (521, 2)
    assert np.array_equal(found.trials[2], low.trials[2])


def test_several_objects_share_a_container(noise, tmp_path):
    noise.save(tmp_path / "rec")
    noise.selectdata(trials=[0]).save(tmp_path / "rec", tag="one")
    assert set(ephys.load(tmp_path / "rec.spy")) == {"rec.analog", "rec_one.analog"}
    assert len(ephys.load(tmp_path / "rec.spy", tag="one").trials) == 1
    with pytest.raises(OutputError, match="overwrite=True"):
        noise.save(tmp_path / "rec")


def test_a_file_that_says_nothing_of_trials_is_refused(tmp_path, stacked_file):
    with pytest.raises(InputError, match="AnalogData\\(path"):
        ephys.load(stacked_file[0])


def test_a_dataarray_goes_there_and_back(noise):
    back = ephys.from_xarray(noise.to_xarray())
    assert back.samplerate == noise.samplerate
    assert np.array_equal(back.data, noise.data)
    assert np.array_equal(back.trialdefinition, noise.trialdefinition)


def test_epochs_and_raw_of_mne_go_there_and_back(noise):
    pytest.importorskip("mne")
    for data in (noise, noise.selectdata(trials=[2])):
        back = ephys.from_mne(ephys.to_mne(data))
        assert np.allclose(np.asarray(back.data), np.asarray(data.data))
        assert back.time[0][0] == data.time[0][0]
        assert back.channel.tolist() == data.channel.tolist()


def test_blocks_of_neo_go_there_and_back(unequal):
    pytest.importorskip("neo")
    back = ephys.from_neo(ephys.to_neo(unequal))
    assert np.array_equal(back.trials[1], unequal.trials[1])
    assert back.samplerate == unequal.samplerate


def test_an_nwb_file_is_read_where_it_lies(noise, tmp_path):
    pytest.importorskip("pynwb")
    path = tmp_path / "rec.nwb"
    ephys.to_nwb(noise, path)
    back = ephys.from_nwb(path)
    assert not isinstance(back._array, np.ndarray)
    assert np.array_equal(back.trials[3], noise.trials[3])
    assert np.array_equal(back.trialdefinition, noise.trialdefinition)
