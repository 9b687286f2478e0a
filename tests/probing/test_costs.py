import numpy as np
import pytest

import barrow
from barrow.model.applied import apply_step
from barrow.model.cost import Cost
from barrow.probing.child import measure_peaks
from barrow.probing.fits import fit_peak
from barrow.probing.probe import learn_form


def applied(func, data, **options):
    source = barrow.open(data)
    step = barrow.Step(func, **options).resolved(source.lengths)
    return apply_step(step, [source], learn_form(step, [source]))


@pytest.mark.parametrize(
    ("func", "factor"),
    [
        (lambda x: x + 1, 8 + 8),
        (lambda x: (x + 1) * (x + 2), 8 + 8 * 2),
        (lambda x: np.fft.fft(x.astype("c16")).real.copy(), None),
    ],
)
def test_the_peak_of_a_small_task_predicts_that_of_a_large_one(func, factor):
    target = applied(func, np.random.default_rng(0).random((64, 32768)), whole=(1,))
    rows = [1, 2, 4, 32]
    peaks = measure_peaks(target, [((0, n), (0, 32768)) for n in rows])
    items = [n * 32768 for n in rows]
    base, slope, margin = fit_peak(items[:3], peaks[:3])
    assert base + slope * items[3] == pytest.approx(peaks[3], rel=0.15)
    assert peaks[3] <= (base + slope * items[3]) * (1 + margin)
    if factor is not None:
        assert slope == pytest.approx(factor, rel=0.15)


def test_a_function_that_cannot_travel_is_measured_here():
    import threading

    lock = threading.Lock()

    def locked(x):
        with lock:
            return x + 1

    target = applied(locked, np.zeros((200, 200)))
    assert measure_peaks(target, [((0, 10), (0, 200))]) is None
    assert barrow.plan(locked, np.zeros((2000, 200))).peak_bytes > 0


def test_what_a_function_prints_does_not_disturb_the_measurement():
    def chatty(x):
        print("[1, 2, 3]")
        return x + 1

    target = applied(chatty, np.zeros((200, 2000)))
    assert len(measure_peaks(target, [((0, 100), (0, 2000))])) == 1


def test_a_bad_fit_has_a_wide_margin():
    assert fit_peak([100, 200, 400], [1600, 3200, 6400])[2] == pytest.approx(0.05)
    assert fit_peak([100, 200, 400], [1600, 9000, 6400])[2] > 0.5
    assert fit_peak([100], [1600])[2] > 0.2


def test_time_grows_with_the_items():
    cost = Cost(points=((100, 0.01), (1000, 0.02), (10_000, 0.3)))
    times = [cost.seconds(items) for items in (1, 10, 100, 500, 1000, 5000, 10_000, 10**6)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(30)
