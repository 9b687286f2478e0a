import threading

import numpy as np
import pytest

import barrow
from barrow.model.applied import apply_step
from barrow.model.cost import Cost
from barrow.planning.candidates import list_rungs
from barrow.probing.child import measure_peaks
from barrow.probing.costs import measure_cost
from barrow.probing.fits import fit_peak
from barrow.probing.probe import learn_form
from barrow.probing.sizes import choose_samples
from barrow.probing.writing import measure_copying


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
    line = fit_peak(items[:3], peaks[:3])
    predicted = line.base + line.per_item * items[3]
    assert predicted == pytest.approx(peaks[3], rel=0.15)
    assert peaks[3] <= predicted * (1 + line.margin) + line.slack_bytes
    if factor is not None:
        assert line.per_item == pytest.approx(factor, rel=0.15)


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
    assert fit_peak([100, 200, 400], [1600, 3200, 6400]).margin == pytest.approx(0.05)
    assert fit_peak([100, 200, 400], [1600, 9000, 6400]).margin > 0.5
    assert fit_peak([100], [1600]).margin > 0.2


def test_small_tasks_that_need_more_than_the_line_says_get_slack():
    mega = 10**6
    line = fit_peak([mega, 16 * mega, 64 * mega], [20 * mega, 128 * mega, 512 * mega])
    assert line.margin == pytest.approx(0.05)
    assert (line.base + line.per_item * mega) * 1.05 + line.slack_bytes >= 20 * mega


def test_time_grows_with_the_items():
    cost = Cost(points=((100, 0.01), (1000, 0.02), (10_000, 0.3)))
    times = [cost.seconds(items) for items in (1, 10, 100, 500, 1000, 5000, 10_000, 10**6)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(30)


def measured(target, total_items=None, budget_bytes=10**12):
    return measure_cost(
        target,
        choose_samples(target, list_rungs(target)),
        total_items=total_items or target.nbytes // 8,
        cores=2,
        budget_bytes=budget_bytes,
        is_stored=False,
    )


def test_a_first_call_that_compiles_is_start_up_and_not_cost():
    import time

    calls = []

    def compiled(x):
        if len(calls) == 1:  # the first after the form was learnt
            time.sleep(0.2)
        calls.append(x.size)
        return x + 1

    target = applied(lambda x: x + 1, np.zeros((500, 1000)))
    target = apply_step(barrow.Step(compiled), target.read.inputs, target.read.form)
    calls.append(0)
    cost = measured(target)
    assert 0.1 < cost.startup_seconds < 1
    assert cost.seconds(500 * 1000) < 0.1


def test_work_that_is_over_at_once_gets_no_more_than_a_look():
    seen = []

    def root(x):
        seen.append(x.size)
        return np.sqrt(x)

    target = applied(root, np.ones((2000, 2000)))
    seen.clear()
    measured(target)
    assert max(seen) < 2000 * 2000 / 4


def test_short_work_is_measured_at_two_sizes_however_long_the_first_has_taken():
    import time

    def wait(x):
        time.sleep(1e-7 * x.size)
        return x

    cost = measured(applied(wait, np.ones((2000, 2000))))
    assert len(cost.points) == len(cost.thread_slowdown) == 2


def test_nobody_is_slower_alone_than_side_by_side():
    import time

    alone = threading.current_thread()

    def wait(x):
        time.sleep((3e-7 if threading.current_thread() is alone else 1e-7) * x.size)
        return x

    cost = measured(applied(wait, np.ones((1000, 1000))))
    assert cost.seconds(10**6) < 0.2
    assert [slower for _, slower in cost.thread_slowdown] == [1.0] * len(cost.thread_slowdown)


def test_an_answer_without_dimensions_can_be_copied():
    assert measure_copying(np.array(3.0)).seconds_per_byte > 0


def test_slow_functions_are_called_a_few_times_only():
    import time

    seen = []

    def slow(x):
        seen.append(x.size)
        time.sleep(0.25)
        return x

    target = applied(slow, np.ones((500, 1000)))
    seen.clear()
    measured(target)
    assert len(seen) <= 12


def test_reading_is_told_from_computing(tmp_path):
    import zarr

    stored = zarr.create_array(tmp_path / "x.zarr", shape=(64, 4096), chunks=(8, 4096), dtype="f8")
    stored[:] = np.random.default_rng(0).random((64, 4096))
    assert measured(applied(np.negative, stored)).read_seconds_per_byte > 0
    assert measured(applied(np.negative, np.ones((64, 4096)))).read_seconds_per_byte < 1e-9


def test_memory_that_cannot_be_seen_is_allowed_for():
    opaque = measured(applied(lambda x: x + 1, np.zeros((500, 1000))))
    plain = measured(applied(lambda x: (x + 1) * (x + 2), np.zeros((500, 1000))))
    assert opaque.peak_margin > 1 > plain.peak_margin


def test_no_more_data_travel_than_are_measured(monkeypatch):
    from barrow.probing import child

    sent = []

    def refuse(*_, input, **__):
        sent.append(len(input))
        raise OSError

    monkeypatch.setattr(child.subprocess, "run", refuse)
    data = np.zeros((20_000, 1000))
    measured(applied(lambda x: x + 1, data), total_items=10**12, budget_bytes=10**6)
    assert 0 < max(sent) < data.nbytes / 2
