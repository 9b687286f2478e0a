import numpy as np
import pytest
from scipy import ndimage

import barrow
from barrow.errors import InputError, StepError
from barrow.model.applied import apply_step, as_array, join_lengths, leaf_ranges
from barrow.probing.probe import learn_form


def applied(func, data, **options):
    source = barrow.open(data)
    step = barrow.Step(func, **options).resolved(source.lengths)
    return apply_step(step, [source], learn_form(step, [source]))


def test_reading_any_block_of_a_step_gives_that_block_of_the_plain_answer():
    data = np.random.default_rng(0).random((40, 50))
    smooth = applied(lambda x: ndimage.gaussian_filter(x, 1), data, halo={0: 4, 1: 4})
    plain = ndimage.gaussian_filter(data, 1)
    for ranges in [((0, 40), (0, 50)), ((3, 4), (49, 50)), ((0, 17), (20, 50))]:
        block = tuple(slice(start, stop) for start, stop in ranges)
        np.testing.assert_array_equal(smooth.read(ranges), plain[block])


def test_a_block_of_a_changed_dimension_is_cut_from_the_whole():
    data = np.arange(60.0).reshape(6, 10)
    halved = applied(lambda x: x[:, ::2], data)
    np.testing.assert_array_equal(halved.read(((1, 3), (2, 4))), data[1:3, ::2][:, 2:4])


def test_steps_read_through_one_another_and_ask_for_no_more_than_they_need():
    data = np.random.default_rng(1).random((100,))
    first = applied(lambda x: ndimage.median_filter(x, 5), data, halo={0: 2})
    step = barrow.Step(lambda x: ndimage.maximum_filter1d(x, 3), halo={0: 1}).resolved(
        first.lengths
    )
    both = apply_step(step, [first], learn_form(step, [first]))
    assert leaf_ranges(both, ((50, 60),)) == [((47, 63),)]
    plain = ndimage.maximum_filter1d(ndimage.median_filter(data, 5), 3)
    np.testing.assert_array_equal(both.read(((0, 100),)), plain)
    np.testing.assert_array_equal(both.read(((50, 60),)), plain[50:60])


def test_the_users_array_is_never_changed_by_a_function_that_works_in_place():
    data = np.zeros((300, 400))

    def add_one(x):
        x += 1
        return x

    out = barrow.map(add_one, data)
    assert out.min() == out.max() == 1
    assert not data.any()


def test_an_error_of_the_function_says_on_which_block():
    def picky(x):
        if x.max() > 50:
            raise KeyError("too bright")
        return x

    data = np.zeros((8, 9))
    data[7, 8] = 99
    with pytest.raises(KeyError, match="too bright") as caught:
        barrow.map(picky, data, name="pick")
    assert "step 'pick' was called with array[" in caught.value.__notes__[0]


def test_sources_that_disagree_are_named():
    image = barrow.open(np.zeros((4, 5)), dims=("y", "x"))
    mask = barrow.open(np.zeros((4, 6)), dims=("y", "x"))
    with pytest.raises(InputError, match="'x' has length 5 in 'array' but 6"):
        join_lengths([image, mask])


@pytest.mark.parametrize("answer", [None, "text", {"a": 1}, object()])
def test_an_answer_that_is_no_array_is_refused(answer):
    step = barrow.Step(lambda x: x, name="odd")
    if isinstance(answer, str):
        assert as_array(answer, step).shape == ()
        return
    with pytest.raises(StepError, match="'odd' returned"):
        as_array(answer, step)


def test_a_masked_array_is_refused_before_its_mask_is_lost():
    with pytest.raises(StepError, match="filled"):
        barrow.map(lambda x: np.ma.masked_less(x, 0), np.ones((4, 4)))
