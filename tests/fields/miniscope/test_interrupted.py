"""A run that is killed goes on where it was, and ends with the same result."""

import numpy as np

from barrow import miniscope
from soak.miniscope import list_faults


def test_a_run_killed_in_a_step_does_only_the_rest(found, simulated, tmp_path):
    np.save(tmp_path / "movie.npy", simulated[0])
    faults = list_faults("second_spatial", tmp_path / "movie.npy", tmp_path / "out", found, None)
    assert faults == []


def test_a_damaged_checkpoint_is_made_again(simulated, tmp_path):
    movie = simulated[0][:150]
    miniscope.run(movie, to=tmp_path, cluster=False, quiet=True)
    place = tmp_path / "steps" / "first_spatial.npz"
    place.write_bytes(place.read_bytes()[:100])
    again = miniscope.run(movie, to=tmp_path, cluster=False, quiet=True)
    assert again.redone == ("first_spatial",)
