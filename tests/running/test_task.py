"""A task does its units, whether they are one chunk or several."""

import numpy as np
import pytest

import barrow
from barrow.composing import fuse
from barrow.model.grid import Grid
from barrow.running.backlog import Batch
from barrow.running.sinks import MemorySink
from barrow.running.task import Work, perform

DATA = np.random.default_rng(0).random((12, 10))


def neighbours(x):
    return x + np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0)


def work_of(data=DATA):
    source = barrow.open(data, dims=("y", "x"))
    target = fuse(barrow.Step(neighbours, halo={"y": 1}), [source])
    out = np.full(data.shape, np.nan)
    return Work(target, Grid(target.lengths, {"y": 2, "x": 5}), MemorySink(out)), out


def expected():
    padded = np.pad(DATA, ((1, 1), (0, 0)), mode="symmetric")
    return DATA + padded[:-2] + padded[2:]


UNITS = [range(1), range(1, 2), range(2, 8), range(8, 10), range(10, 11), range(11, 12)]


def test_units_of_several_chunks_give_what_single_ones_give():
    work, out = work_of()
    report = perform(work, Batch(UNITS))
    np.testing.assert_array_equal(out, expected())
    assert [(chunk.number, chunk.cells) for chunk in report.chunks] == [
        (unit.start, len(unit)) for unit in UNITS
    ]
    assert report.n_cells == 12


def test_units_may_be_walked_in_strides():
    work, out = work_of()
    perform(work, Batch(UNITS, strides={"y": 3, "x": 2}))
    np.testing.assert_array_equal(out, expected())


def test_what_is_too_heavy_to_travel_comes_with_each_unit_and_covers_all_its_chunks():
    work, out = work_of()
    readers = work.narrowed(UNITS)
    assert [reader.array.shape for (reader,) in readers[:3]] == [(3, 5), (3, 5), (8, 10)]
    perform(work.light(), Batch(UNITS), readers)
    np.testing.assert_array_equal(out, expected())


def test_the_chunks_of_a_reduction_are_never_put_together():
    target = fuse(barrow.Step(np.sum, combine=np.add), [barrow.open(DATA, dims=("y", "x"))])
    work = Work(target, Grid(target.lengths, {"y": 2, "x": 5}), None)
    with pytest.raises(ValueError, match="too many values"):
        perform(work, Batch([range(2)]))
