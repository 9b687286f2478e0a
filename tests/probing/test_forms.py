import numpy as np
import pytest

import barrow
from barrow.errors import InputError, StepError
from barrow.probing.probe import learn_form


def form_of(func, shape=(6, 40, 50), dims=("c", "y", "x"), **options):
    source = barrow.open(np.random.default_rng(0).random(shape), dims=dims)
    return learn_form(barrow.Step(func, **options).resolved(source.lengths), [source])


def test_a_function_that_keeps_the_shape_can_be_cut_everywhere():
    form = form_of(np.sqrt)
    assert form.cuttable == ("c", "y", "x")
    assert form.lengths == {"c": 6, "y": 40, "x": 50}


def test_a_dropped_dimension_must_be_whole():
    form = form_of(lambda a: a.mean(axis=0))
    assert form.lengths == {"y": 40, "x": 50}
    assert form.whole == {"c"}


def test_a_changed_dimension_must_be_whole_and_keeps_its_name():
    form = form_of(lambda a: a[:, ::3])
    assert form.lengths == {"c": 6, "y": 14, "x": 50}
    assert form.whole == {"y"}
    assert form.kept == {"c", "x"}


def test_an_added_dimension_gets_a_name_of_its_own():
    form = form_of(lambda a: np.stack([a, -a], axis=-1), name="signs")
    assert form.lengths == {"c": 6, "y": 40, "x": 50, "signs_0": 2}
    assert form.cuttable == ("c", "y", "x")


def test_a_transposition_is_understood():
    form = form_of(lambda a: a.transpose(2, 0, 1))
    assert list(form.lengths) == ["x", "c", "y"]
    assert form.cuttable == ("x", "c", "y")


def test_a_histogram_needs_everything_whole():
    form = form_of(lambda a: np.histogram(a, bins=16, range=(0, 1))[0])
    assert form.lengths == {"lambda_0": 16}
    assert form.whole == {"c", "y", "x"}


def test_a_number_is_an_array_without_dimensions():
    form = form_of(np.max)
    assert form.lengths == {}
    assert form.whole == {"c", "y", "x"}


def test_the_dtype_comes_from_the_function():
    assert form_of(lambda a: np.fft.fft(a, axis=0).astype("c8"), whole=("c",)).dtype == "c8"


def test_one_item_in_each_dimension_is_enough():
    assert form_of(np.sqrt, shape=(1, 1, 1)).lengths == {"c": 1, "y": 1, "x": 1}


def test_a_function_that_needs_some_room_is_offered_more():
    def roomy(a):
        if min(a.shape) < 30:
            raise ValueError("too small")
        return a

    assert form_of(roomy, shape=(300, 400), dims=("y", "x")).cuttable == ("y", "x")


def test_the_function_sees_nothing_but_pieces_of_the_data():
    data = np.arange(6 * 40 * 50).reshape(6, 40, 50)
    seen = []

    def note(a):
        seen.append(a.copy())
        return a

    source = barrow.open(data)
    learn_form(barrow.Step(note).resolved(source.lengths), [source])
    assert all(block.size for block in seen)
    assert all(np.isin(block, data).all() for block in seen)
    assert sum(block.size for block in seen) < data.size


def test_a_dtype_that_changes_with_the_data_is_an_error():
    with pytest.raises(StepError, match="cannot be put together"):
        form_of(lambda a: a.astype("f4") if a.shape[1] < 15 else a)


def test_a_halo_along_a_dropped_dimension_is_an_error():
    with pytest.raises(InputError, match="cannot be trimmed"):
        form_of(lambda a: a.max(axis=1), halo={"y": 2})
