import numpy as np
import pytest

from barrow.probing.lock import measure_lock_share


def test_pure_python_holds_the_lock():
    assert measure_lock_share(lambda: sum(i * i for i in range(1_000_000))) > 0.5


def test_numpy_does_not():
    data = np.random.default_rng(0).random(2_000_000)

    def many():
        for _ in range(5):
            np.sin(data)

    assert measure_lock_share(many) < 0.4


def test_an_error_of_the_call_is_raised():
    with pytest.raises(ZeroDivisionError):
        measure_lock_share(lambda: 1 / 0)
