"""Pictures."""

import numpy as np
import pytest

from barrow import ephys
from barrow.errors import InputError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    matplotlib.pyplot.close("all")


def test_a_recording_is_drawn_with_the_names_of_its_channels(noise):
    _, axes = noise.singlepanelplot(trials=1)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["a", "b", "c"]
    assert len(axes.lines) == 3


def test_spectra_are_drawn_in_decibels(noise):
    power = ephys.freqanalysis(noise, foilim=[5, 100])
    _, axes = power.singlepanelplot(trials=0, channel="b")
    drawn = axes.lines[0].get_ydata()
    assert np.allclose(drawn, 10 * np.log10(power.show(trials=0, channel="b")))
    assert axes.get_ylabel() == "power (dB)"


def test_times_and_frequencies_make_an_image_for_each_channel(noise):
    power = ephys.freqanalysis(noise, method="mtmconvol", t_ftimwin=0.1, toi=0.8)
    _, axes = power.singlepanelplot(channel="a")
    assert axes.get_ylabel() == "frequency (Hz)"
    _, grid = power.multipanelplot(trials=2)
    assert [axes.get_title() for axes in grid.ravel()[:3]] == ["a", "b", "c"]
    with pytest.raises(InputError, match="one channel"):
        power.singlepanelplot()


def test_pairs_are_drawn_once(noise):
    _, axes = ephys.connectivityanalysis(noise, method="coh").singlepanelplot()
    assert [line.get_label() for line in axes.lines] == ["a – b", "a – c", "b – c"]


def test_what_cannot_be_drawn_is_refused(noise):
    with pytest.raises(InputError, match="one trial"):
        noise.singlepanelplot(trials=[0, 1])
    with pytest.raises(InputError, match="output='abs'"):
        ephys.freqanalysis(noise, output="fourier").singlepanelplot()
