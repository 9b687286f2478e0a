"""Cells of several sessions: the same ones are found again."""

from types import SimpleNamespace

import numpy as np

from barrow import miniscope


def test_cells_of_a_session_that_was_moved_are_known_again():
    truth = miniscope.simulate(frames=2, height=96, width=96, cells=8, seed=2)[1]
    first = SimpleNamespace(A=truth.A, max_proj=100 * truth.A.sum(axis=0) + 10)
    order = np.array([3, 1, 0, 7, 5, 2])
    moved = np.roll(truth.A[order], (4, -3), axis=(1, 2))
    second = SimpleNamespace(A=moved, max_proj=np.roll(first.max_proj, (4, -3), axis=(0, 1)))
    table = miniscope.cross_register([first, second])
    assert len(table) == 8
    for place, unit in enumerate(order):
        assert table["session_1"][unit] == place
    assert (table["session_1"] == -1).sum() == 2
