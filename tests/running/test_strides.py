"""A chunk that is walked in strides gives what it gives at once."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import barrow
from barrow.composing import fuse
from barrow.model.grid import Grid
from barrow.model.source import Reader
from barrow.running.backlog import Batch
from barrow.running.sinks import MemorySink
from barrow.running.strides import read_in_strides
from barrow.running.task import Work, perform

DATA = np.random.default_rng(0).random((23, 31))


@dataclass
class CountingReader(Reader):
    """Reads from an array and notes which blocks were asked for."""

    array: np.ndarray
    asked: list = field(default_factory=list)

    def __call__(self, ranges):
        self.asked.append(ranges)
        return self.array[tuple(slice(*pair) for pair in ranges)].copy()


def counted(data=DATA, dims=("y", "x")):
    source = barrow.open(data, dims=dims)
    return replace(source, read=CountingReader(data))


def smooth(x):
    # Not a running sum, whose last digits depend on where it begins.
    return ndimage.correlate(x, np.arange(25.0).reshape(5, 5), mode="reflect")


def smoothing(border="reflect"):
    return barrow.Step(smooth, halo={"y": 2, "x": (2, 3)}, border=border)


def chains():
    """Return steps of every kind, applied to sources that count."""
    image, mask = counted(), counted(DATA[0] > 0.5, dims=("x",))
    half = barrow.Step(lambda x: (x * 100).astype("i2"))
    return {
        "halo": (fuse(smoothing(), [image]), [image]),
        "halo that ends with the data": (fuse(smoothing(None), [image]), [image]),
        "constant border": (fuse(smoothing(1.5), [image]), [image]),
        "several sources": (
            fuse(barrow.Step(lambda x, m: np.where(m, x, -x)), [image, mask]),
            [image, mask],
        ),
        "changed dtype": (fuse(half, [image]), [image]),
        "whole dimension": (
            fuse(barrow.Step(lambda x: np.sort(x, axis=1), whole=("x",)), [image]),
            [image],
        ),
        "dropped dimension": (fuse(barrow.Step(lambda x: x.sum(axis=1)), [image]), [image]),
        "fused": (fuse(half, [fuse(smoothing(), [fuse(smoothing(), [image])])]), [image]),
    }


@pytest.mark.parametrize("name", chains())
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_strides_of_any_size_change_nothing(name, data):
    target, _ = chains()[name]
    ranges = []
    for length in target.shape:
        start = data.draw(st.integers(0, length - 1))
        ranges.append((start, data.draw(st.integers(start + 1, length))))
    strides = {dim: data.draw(st.integers(1, length + 3)) for dim, length in target.lengths.items()}
    at_once = target.read(tuple(ranges))
    walked = read_in_strides(target, tuple(ranges), strides)
    assert walked.dtype == at_once.dtype
    np.testing.assert_array_equal(walked, at_once)


@pytest.mark.parametrize("name", chains())
def test_every_source_is_read_once_for_a_chunk(name):
    target, sources = chains()[name]
    for source in sources:
        source.read.asked.clear()
    read_in_strides(target, target.everything, {"y": 4, "x": 5} if name[0] != "d" else {"y": 4})
    assert [len(source.read.asked) for source in sources] == [1] * len(sources)


def test_a_function_that_writes_into_its_input_changes_nothing_for_its_neighbours():
    def spoil(x):
        answer = smooth(x)
        x[...] = -1
        return answer

    target = fuse(barrow.Step(spoil, halo={"y": 2, "x": 2}), [counted()])
    walked = read_in_strides(target, target.everything, {"y": 5, "x": 7})
    np.testing.assert_array_equal(walked, smooth(DATA))


def test_data_of_the_user_are_still_handed_over_read_only():
    seen = []

    def look(x):
        seen.append(x.flags.writeable)
        return x + 1

    target = fuse(barrow.Step(look), [barrow.open(DATA, dims=("y", "x"))])
    seen.clear()
    read_in_strides(target, target.everything, {"y": 5, "x": 7})
    assert set(seen) == {False}


def test_a_task_in_strides_writes_once_and_reports_its_times():
    writes = []

    class Noted(MemorySink):
        def write(self, ranges, block):
            writes.append(ranges)
            super().write(ranges, block)

    image = counted()
    target = fuse(smoothing(), [image])
    image.read.asked.clear()
    out = np.zeros_like(DATA)
    grid = Grid(target.lengths, {"y": 10, "x": 31})
    work = Work(target, grid, Noted(out), {"y": 3, "x": 8})
    report = perform(work, Batch([range(1), range(1, 2), range(2, 3)]))
    np.testing.assert_array_equal(out, smooth(DATA))
    assert writes == list(grid)
    assert len(image.read.asked) == 3
    first = report.chunks[0]
    assert first.written_bytes == 10 * 31 * 8
    assert first.read_bytes == 12 * 31 * 8
    assert min(first.read_seconds, first.compute_seconds, first.write_seconds) > 0


@pytest.mark.parametrize("engine", ["inline", "threads", "dask"])
def test_a_plan_with_strides_runs_everywhere(engine, tmp_path, local_cluster):
    zarr.create_array(tmp_path / "in.zarr", data=DATA, chunks=(12, 31))
    source = barrow.open(tmp_path / "in.zarr", dims=("y", "x"))
    plan = barrow.plan(smooth, source, halo={"y": 2, "x": 2}, to=tmp_path / "out.zarr", quiet=True)
    cluster = {"workers": 2} if engine == "dask" else {"workers": 1, "threads": 2}
    changed = replace(plan.with_chunks(y=12), strides={"y": 5, "x": 9}, engine=engine, **cluster)
    run = barrow.run(changed)
    assert run.metrics["chunks"] == 2
    np.testing.assert_array_equal(run.result[...], smooth(DATA))
