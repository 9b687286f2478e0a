"""What takes long to read is read once, and measured many times."""

import numpy as np
import pytest
import zarr

import barrow
from barrow.model.applied import apply_step, evaluate
from barrow.probing import ahead
from barrow.probing.costs import measure_cost
from barrow.probing.probe import learn_form
from barrow.probing.sizes import Sample


@pytest.fixture
def target(tmp_path):
    movie = np.random.default_rng(0).random((64, 30, 40))
    zarr.create_array(tmp_path / "movie.zarr", data=movie, chunks=(64, 5, 8))
    source = barrow.open(tmp_path / "movie.zarr", dims=("frame", "height", "width"))
    step = barrow.Step(np.sqrt, halo={"frame": 1}).resolved(source.lengths)
    return apply_step(step, [source], learn_form(step, [source]))


def block(start, stop):
    return ((start, stop), (0, 30), (0, 40))


SAMPLES = [Sample(n * 1200, (block(32, 32 + n), block(9, 9 + n))) for n in (1, 4, 16)]


def test_quick_sources_are_left_alone(target, monkeypatch):
    monkeypatch.setattr(ahead, "DEAR_SECONDS", 60.0)
    assert ahead.read_ahead(target, SAMPLES) is None


def test_samples_of_all_sizes_are_taken_from_one_reading(target, monkeypatch):
    monkeypatch.setattr(ahead, "DEAR_SECONDS", 0.0)
    found = ahead.read_ahead(target, SAMPLES)
    assert [sample.items for sample in found.samples] == [1200, 4800, 19200]
    for sample in found.samples:
        (where,) = sample.blocks
        assert np.array_equal(evaluate(found.target, where), evaluate(target, where))
    assert found.read_seconds_per_byte > 0


def test_what_is_kept_is_bounded(target, monkeypatch):
    monkeypatch.setattr(ahead, "DEAR_SECONDS", 0.0)
    monkeypatch.setattr(ahead, "WINDOW_BYTES", 8 * 1200 * 7)
    found = ahead.read_ahead(target, SAMPLES)
    assert [sample.items for sample in found.samples] == [1200, 4800]


def test_a_cost_measured_so_tells_what_decoding_holds_from_what_grows(target, monkeypatch):
    monkeypatch.setattr(ahead, "DEAR_SECONDS", 0.0)
    cost = measure_cost(
        target,
        SAMPLES,
        total_items=64 * 1200,
        cores=1,
        budget_bytes=1,
        is_stored=False,
    )
    assert cost.read_seconds_per_byte > 0
    # Frames, and a halo of two, go in, and frames come out: not sixteen times what one needs.
    assert cost.peak_per_item < 64
