"""Activity from traces: how much there was, and in which frame."""

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from scipy.signal import lfilter

from barrow.fields.miniscope import update_temporal
from barrow.fields.miniscope.deconvolving import Process, deconvolve
from barrow.fields.miniscope.scoring import correlate
from barrow.fields.miniscope.temporal import fit_processes

BINS = 20
"""Parts of a frame in which spikes of a camera's movie may fall."""
PROCESSES = [
    Process(9.0),
    Process(9.0, 0.4),
    Process(9.0, 0.0, True),
    Process(9.0, 0.4, True),
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def film(rng, units=12, frames=600, decay=10.0, rise=1.0, light=6.0, baseline=20.0):
    """Return traces as a camera sees them, and the spikes of each frame: bursts at any time."""
    bursts = lfilter([1], [1, -0.7], rng.random((units, frames)) < 0.006, axis=1) > 0.3
    rate = np.repeat(np.where(bursts, 5.0, 0.02), BINS, axis=1) / BINS
    spikes = rng.poisson(rate).astype(float)
    time = np.arange(8 * int(decay) * BINS) / BINS
    response = np.exp(-time / decay) - np.exp(-time / rise)
    fine = np.array([np.convolve(row, response)[: row.size] for row in spikes])
    calcium = fine.reshape(units, frames, BINS).mean(axis=2)
    traces = baseline + light * calcium + rng.standard_normal(calcium.shape)
    return traces, spikes.reshape(units, frames, BINS).sum(axis=2)


def best_lag(found, truth):
    """Return by how many frames what was found is late."""
    lags = (-2, -1, 0, 1, 2)
    fits = [
        np.mean([correlate(np.roll(a, -lag), b) for a, b in zip(found, truth, strict=True)])
        for lag in lags
    ]
    return lags[int(np.argmax(fits))], max(fits)


@pytest.mark.parametrize("light", [2.0, 6.0, 30.0])
def test_activity_within_an_exposure_is_put_in_its_own_frame(rng, light):
    traces, spikes = film(rng, light=light)
    lag, fit = best_lag(update_temporal(traces, p=2).S, spikes)
    assert lag == 0
    assert fit > 0.75


@pytest.mark.parametrize("light", [4.0, 30.0])
def test_activity_at_the_beginning_of_frames_stays_in_its_frame(rng, light):
    spikes = rng.poisson(0.02, (12, 600)).astype(float)
    traces = lfilter([light], [1, -0.92], spikes, axis=1) + rng.standard_normal(spikes.shape)
    found = update_temporal(traces, p=2)
    lag, fit = best_lag(found.S, spikes)
    assert lag == 0
    assert fit > 0.85
    assert (found.m[:, 0] == 1).all()


def test_rise_and_decay_are_those_of_the_indicator(rng):
    traces, _ = film(rng)
    found = fit_processes(traces, np.ones(len(traces)), 2)
    assert all(process.exposed for process in found)
    assert found[0].rise == pytest.approx(np.exp(-1), abs=0.12)
    assert np.median([process.decay for process in found]) == pytest.approx(10, rel=0.15)


def test_the_baseline_lies_under_the_activity_and_amid_the_noise(rng):
    traces, _ = film(rng)
    found = update_temporal(traces, p=2)
    assert np.abs(np.median(found.b0) - 20) < 0.4


def test_the_price_of_activity_does_not_move_the_baseline(rng):
    traces, _ = film(rng, units=3)
    free, usual, dear = (update_temporal(traces, p=2, sparse_penal=n) for n in (0, 1, 3))
    np.testing.assert_allclose(free.b0, usual.b0, rtol=1e-12)
    np.testing.assert_allclose(dear.b0, usual.b0, rtol=1e-12)
    assert (free.S > 0).sum() > (usual.S > 0).sum() > (dear.S > 0).sum() > 0


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("price", [0.5, 1.0, 2.0])
def test_no_other_activity_explains_a_trace_better(rng, process, price):
    trace = film(rng, units=1, frames=150)[0][0]
    calcium, activity, baseline = deconvolve(trace, process, 1.0, sparse_penal=price)
    # What happened before the first frame is seen in it, but is not part of the result.
    impulse = np.eye(152)
    response = lfilter(process.m, [1, *-process.g], impulse, axis=0)[2:]
    aim = response.T @ (trace - baseline) - price * process.size
    root = cholesky(response.T @ response + 1e-9 * impulse)
    exact = nnls(root, solve_triangular(root, aim, trans="T"), maxiter=10_000)[0]
    np.testing.assert_allclose(calcium, response @ exact, atol=0.02)
    assert (activity >= 0).all()
    assert (activity == 0).any()


@pytest.mark.parametrize("rise", [0.0, 0.3, 0.6])
def test_an_exposure_gathers_light_as_many_short_ones_do(rise):
    process = Process(7.0, rise, True)
    bins, frames = 400, 30
    time = (np.arange(frames * bins) + 0.5) / bins
    response = np.exp(-time / 7)
    if rise:
        response -= rise**time
    # A spike anywhere in frame 0: the mean over all places.
    spread = np.convolve(response, np.ones(bins))[: time.size]
    slow = spread.reshape(frames, bins).sum(axis=1)
    quick = lfilter(process.m, [1, *-process.g], np.eye(1, frames)[0])
    np.testing.assert_allclose(quick / quick.max(), slow / slow.max(), atol=2e-3)
    assert process.m.sum() == pytest.approx(1)


def test_brightness_and_order_of_units_change_nothing_else(rng):
    traces, _ = film(rng, units=5)
    found = update_temporal(traces, p=2)
    other = update_temporal(1000 * traces[::-1], p=2)
    np.testing.assert_allclose(other.S[::-1], 1000 * found.S, rtol=1e-4, atol=1)
    np.testing.assert_allclose(other.g[::-1], found.g, rtol=1e-9)


@pytest.mark.parametrize("p", [1, 2])
def test_calcium_is_what_the_process_makes_of_activity(rng, p):
    traces, _ = film(rng, units=3)
    found = update_temporal(traces, p=p)
    for unit, calcium in enumerate(found.C):
        made = lfilter(found.m[unit], [1, *-found.g[unit]], found.S[unit])
        # What happened before the first frame is in C alone, until it has decayed.
        np.testing.assert_allclose(made[200:], calcium[200:], atol=0.01 * calcium.max())


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("frames", [1, 2, 15, 200])
def test_flat_traces_have_no_activity(p, frames):
    found = update_temporal(np.full((2, frames), 5.0), p=p)
    assert (found.C == 0).all()
    assert (found.S == 0).all()
    assert (found.b0 == 5).all()


def test_a_flat_trace_beside_others_does_not_disturb_them(rng):
    traces, _ = film(rng, units=4)
    alone = update_temporal(traces, p=2)
    beside = update_temporal(np.vstack([np.zeros(600), traces]), p=2)
    np.testing.assert_array_equal(beside.S[1:], alone.S)
    assert (beside.S[0] == 0).all()


@pytest.mark.parametrize("frames", [2, 3, 15, 16, 40])
def test_one_short_trace_is_enough(rng, frames):
    found = update_temporal(rng.random((1, frames)), p=2)
    assert np.isfinite(found.C).all()
    assert np.isfinite(found.S).all()


def test_no_units_have_no_activity():
    found = update_temporal(np.zeros((0, 50)), p=2)
    assert found.S.shape == (0, 50)
    assert found.g.shape == (0, 2)
