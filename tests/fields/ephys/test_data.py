"""Trials with their names and times."""

import numpy as np
import pytest

from barrow import ephys
from barrow.errors import InputError


def test_trials_lie_one_after_the_other_in_data(noise):
    assert noise.data.shape == (1000, 3)
    assert np.array_equal(noise.data[200:400], noise.trials[1])
    assert noise.trialdefinition[1].tolist() == [200, 400, -50]
    assert noise.time[0][0] == -0.1


def test_trials_of_different_lengths_can_be_read_as_one(unequal):
    assert not unequal.is_equal
    assert [len(trial) for trial in unequal.trials] == [200, 150, 171]
    assert unequal.data.shape == (521, 2)
    assert np.isnan(unequal.to_xarray().values[1, 150:]).all()


def test_a_selection_is_a_view_with_its_own_names_and_times(noise):
    part = noise.selectdata(trials=[3, 1], channel=["c", "a"], latency=[0, 0.1])
    assert part.channel.tolist() == ["c", "a"]
    assert part.lengths.tolist() == [51, 51]
    assert part.trialintervals[0].tolist() == [0, 0.1]
    assert np.array_equal(part.trials[0], noise.trials[3][50:101][:, [2, 0]])
    assert np.shares_memory(part._array, noise._array)
    assert np.array_equal(np.asarray(part.data)[51:], part.trials[1])


def test_a_selection_of_a_selection_counts_from_the_first(noise):
    part = noise.selectdata(channel=[1, 2], trials=[4, 2]).selectdata(channel=["c"], trials=[1])
    assert np.array_equal(part.trials[0], noise.trials[2][:, 2:])


def test_what_is_selected_lies_in_the_source(noise):
    part = noise.selectdata(trials=[4, 0], channel=[2, 0])
    source = part.source()
    block = source.read(((0, 2), (10, 20), (1, 2)))
    assert source.lengths == {"trial": 2, "time": 200, "channel": 2}
    assert np.array_equal(block[0, :, 0], noise.trials[4][10:20, 0])


@pytest.mark.parametrize("name", ["plain", "chunked"])
def test_a_file_is_read_trial_by_trial(stacked_file, name):
    path, values = stacked_file
    table = [[0, 500, 0], [500, 1000, 0], [1500, 2000, 0]]
    rec = ephys.AnalogData(path, 250.0, table, name=name)
    assert np.array_equal(rec.trials[2], values[1500:])
    assert np.array_equal(rec.cube()[1], values[500:1000])
    assert np.array_equal(rec.selectdata(channel=[3, 1]).cube()[0], values[:500][:, [3, 1]])


def test_unequal_trials_of_a_file_have_zeros_behind_them(stacked_file):
    path, values = stacked_file
    rec = ephys.AnalogData(path, 250.0, [[100, 400, 0], [900, 1000, 0]], name="chunked")
    cube = rec.cube()
    assert cube.shape == (2, 300, 4)
    assert np.array_equal(cube[1, :100], values[900:1000])
    assert not cube[1, 100:].any()


def test_a_new_trialdefinition_cuts_the_samples_anew(noise):
    rec = ephys.AnalogData(np.asarray(noise.data), noise.samplerate)
    assert len(rec.trials) == 1
    rec.trialdefinition = [[0, 300, 0, 7], [300, 1000, 0, 8]]
    assert [len(trial) for trial in rec.trials] == [300, 700]
    assert rec.trialinfo.ravel().tolist() == [7, 8]


def test_show_gives_an_array_or_a_list(noise):
    assert noise.show(trials=0, channel="b").shape == (200,)
    assert [part.shape for part in noise.show(trials=[0, 1], channel="b")] == [(200,), (200,)]


def test_frequencies_are_selected_by_their_limits(noise):
    spectra = ephys.freqanalysis(noise)
    assert spectra.selectdata(frequency=[10, 20]).freq.tolist() == [10, 12.5, 15, 17.5, 20]


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ({"channel": "d"}, "a, b, c"),
        ({"trials": [7]}, "counted from 0 to 4"),
        ({"latency": [5, 6]}, "no trial has samples"),
        ({"latency": "later"}, "minperiod"),
        ({"frequency": 3}, "no freq"),
        ({"colour": 3}, "does not know colour"),
    ],
)
def test_a_selection_that_is_not_there_is_refused_with_what_is(noise, selection, words):
    with pytest.raises(InputError, match=words):
        noise.selectdata(**selection)


def test_what_was_done_is_kept(noise):
    band = ephys.preprocessing(noise, filter_type="bp", freq=[20, 40])
    spectra = ephys.freqanalysis(band, foilim=[5, 50])
    assert list(spectra.cfg) == ["preprocessing", "freqanalysis"]
    assert "freq=[20, 40]" in spectra.log
    again = ephys.freqanalysis(spectra.cfg, ephys.preprocessing(noise, spectra.cfg))
    assert np.array_equal(again.data, spectra.data)


def test_settings_may_come_as_a_struct(noise):
    cfg = ephys.get_defaults(ephys.freqanalysis)
    cfg.foilim = [5, 50]
    cfg.select = {"channel": ["a"]}
    assert np.array_equal(
        ephys.freqanalysis(cfg, noise).data,
        ephys.freqanalysis(noise, foilim=[5, 50], select={"channel": ["a"]}).data,
    )
    with pytest.raises(InputError, match="twice"):
        ephys.freqanalysis(noise, cfg, foilim=[1, 2])


def test_selections_can_be_written_as_calls(noise):
    cfg = ephys.StructDict(trials=[1], channel=["b"])
    part = ephys.selectdata(cfg, noise)
    assert np.array_equal(ephys.show(part), ephys.show(noise, trials=1, channel="b"))
