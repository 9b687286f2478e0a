"""A stand-in looks like a result that nobody has computed."""

from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.composing import fuse
from barrow.probing.probe import TooMuchError
from barrow.probing.stand_in import make_stand_in

MOVIE = np.arange(60 * 4 * 5, dtype="i4").reshape(60, 4, 5)
SOURCE = barrow.open(MOVIE, dims=("frame", "y", "x"))
DOUBLED = fuse(barrow.Step(lambda x: 2.0 * x, name="double", whole=("y", "x")), [SOURCE])


def stand_in(frames=3):
    rungs = [{"frame": frames, "y": 4, "x": 5}]
    return make_stand_in(DOUBLED, rungs, cuttable=("frame",))


def test_it_has_the_form_of_the_whole_result():
    found = stand_in()
    assert (found.name, found.lengths, found.dtype) == ("double", DOUBLED.lengths, np.dtype("f8"))


@pytest.mark.parametrize(
    "ranges",
    [
        ((0, 60), (0, 4), (0, 5)),
        ((17, 18), (1, 3), (4, 5)),
        ((5, 5), (0, 4), (0, 5)),
        ((50, 60), (3, 4), (0, 1)),
    ],
)
def test_any_block_has_its_shape_and_is_made_of_real_answers(ranges):
    block = stand_in().read(ranges)
    assert block.shape == tuple(stop - start for start, stop in ranges)
    assert block.dtype == "f8"
    assert block.flags.owndata
    assert set(block.ravel()) <= set((2.0 * MOVIE).ravel())


def test_what_cannot_be_cut_is_where_it_is_in_the_result():
    block = stand_in().read(((0, 60), (2, 4), (1, 5)))
    images = {image[2:4, 1:5].tobytes() for image in 2.0 * MOVIE}
    assert all(image.tobytes() in images for image in block)


def test_the_steps_are_asked_for_a_few_small_blocks_only():
    asked = []

    def note(x):
        asked.append(len(x))
        return x

    target = fuse(barrow.Step(note, whole=("y", "x")), [SOURCE])
    asked.clear()
    rungs = [{"frame": frames, "y": 4, "x": 5} for frames in (1, 2, 3, 6, 60)]
    found = make_stand_in(target, rungs, cuttable=("frame",))
    found.read(found.everything)
    found.read(found.everything)
    assert asked == [3, 3, 3]


def test_empty_results_can_be_stood_in_for():
    nothing = barrow.open(MOVIE[:0], dims=("frame", "y", "x"))
    target = fuse(barrow.Step(lambda x: x), [nothing])
    found = make_stand_in(target, [{"frame": 1, "y": 4, "x": 5}], cuttable=())
    assert found.read(((0, 0), (0, 4), (0, 5))).shape == (0, 4, 5)


def test_too_much_is_noticed_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr("barrow.model.reading.MUCH_BYTES", 1000)
    calls = []
    below = fuse(
        barrow.Step(lambda x: calls.append(x.shape) or x, name="note", whole=("y", "x")), [SOURCE]
    )
    calls.clear()
    with pytest.raises(TooMuchError):
        fuse(barrow.Step(lambda x: np.sort(x, axis=0), whole=("frame",)), [below])
    assert calls == []
    assert fuse(barrow.Step(np.negative, whole=("frame",)), [replace(SOURCE, grain={})])
