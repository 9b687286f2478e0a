"""What clearly cannot fit is refused; what may fit is not."""

from dataclasses import replace

import numpy as np
import pytest

import barrow
from barrow.model.applied import apply_step
from barrow.running import space
from barrow.running.disk import Room
from barrow.running.space import foresee

NOISE = np.random.default_rng(0).random((64, 128, 128))  # 8 MiB


@pytest.fixture
def free(monkeypatch):
    """Return a function that sets how much is free."""

    def set_free(count):
        monkeypatch.setattr(space, "measure_room", lambda path: Room(count, 2**40, path))

    return set_free


def planned(func, data=NOISE):
    return barrow.plan(func, data, quiet=True, cluster=False).with_chunks(dim_0=4)


@pytest.mark.parametrize(
    ("free_bytes", "verdict"),
    [(2**23, None), (2**23 - 1, False), (2**21, False), (2**20, True), (100, True)],
)
def test_only_what_clearly_does_not_fit_is_refused(free_bytes, verdict, free, tmp_path):
    free(free_bytes)
    outlook = foresee(planned(np.negative), tmp_path, 1.0)
    assert (None if outlook is None else outlook.is_hopeless) == verdict


def test_what_is_stored_already_counts(free, tmp_path):
    free(2**20)
    assert foresee(planned(np.negative), tmp_path, 1.0).is_hopeless
    assert not foresee(planned(np.negative), tmp_path, 0.25).is_hopeless
    assert foresee(planned(np.negative), tmp_path, 0.1) is None
    assert foresee(planned(np.negative), tmp_path, 0.0) is None


def test_a_result_that_is_empty_in_one_place_is_not_refused(free, tmp_path):
    data = NOISE.copy()
    data[:16] = 0
    free(2**20)
    outlook = foresee(planned(np.negative, data), tmp_path, 1.0)
    assert not outlook.is_hopeless
    assert "up to 8.00 MiB more (about" in outlook.describe()


def test_a_function_that_is_too_slow_to_look_at_is_not_refused(free, tmp_path, monkeypatch):
    monkeypatch.setattr(space, "SAMPLE_SECONDS", -1.0)
    free(2**20)
    assert not foresee(planned(np.negative), tmp_path, 1.0).is_hopeless


def test_an_error_of_the_function_is_not_hidden_by_the_look(free, tmp_path):
    def fails(x):
        if x.max() > 0:
            raise ZeroDivisionError
        return x

    plan = planned(np.negative)
    free(2**20)
    apply = plan.target.read
    target = apply_step(replace(apply.step, func=fails), apply.inputs, apply.form)
    assert not foresee(replace(plan, target=target), tmp_path, 1.0).is_hopeless
