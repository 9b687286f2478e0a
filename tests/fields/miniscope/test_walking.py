"""Passes over a movie: what each of them may use."""

import numpy as np

from barrow.fields.miniscope.walking import Walk


def test_what_is_held_leaves_a_pass_less_memory():
    walk = Walk(memory="20GB")
    before = walk.left_bytes()
    held = np.ones(3 * 10**8, np.uint8)
    assert before - walk.left_bytes() > 2.5 * 10**8
    del held


def test_a_pass_has_a_quarter_of_the_memory_however_much_is_held():
    held = np.ones(3 * 10**8, np.uint8)
    assert Walk(memory="200MB").left_bytes() == 50 * 10**6
    del held


def test_without_a_limit_passes_have_none():
    assert Walk().left_bytes() is None
