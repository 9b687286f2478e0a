"""A run that is killed goes on where it was, and ends with the same result."""

import numpy as np

from barrow import miniscope
from soak.miniscope import list_faults, take_up


def test_a_run_killed_in_a_step_does_only_the_rest(simulated, tmp_path):
    movie = tmp_path / "movie.npy"
    np.save(movie, simulated[0][:256])
    right = take_up(movie, tmp_path / "right", None)
    assert list_faults("second_spatial", movie, tmp_path / "killed", right, None) == []


def test_a_damaged_checkpoint_is_made_again(simulated, tmp_path):
    movie = simulated[0][:150]
    miniscope.run(movie, to=tmp_path, cluster=False, quiet=True)
    place = tmp_path / "steps" / "first_spatial.npz"
    place.write_bytes(place.read_bytes()[:100])
    again = miniscope.run(movie, to=tmp_path, cluster=False, quiet=True)
    assert again.redone == ("first_spatial",)
