"""Any shape, any cut, any halo, several dtypes: a map equals the plain call, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import ndimage

import barrow
from barrow.running.fold import Fold

DTYPES = ["u1", "i2", "i8", "f4", "f8", "c8", "?"]
ENGINES = ["inline", "threads", "dask"]
EXAMPLES = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def arrays(draw, min_dims=1):
    shape = draw(npst.array_shapes(min_dims=min_dims, max_dims=4, min_side=1, max_side=9))
    dtype = draw(st.sampled_from(DTYPES))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    values = random.integers(0, 255, shape).astype(dtype)
    if values.dtype.kind in "fc":
        values = (values / 7).astype(dtype)
        values[random.random(shape) < 0.05] = np.nan
    return values


def add_neighbours(x, axis, width, mode="reflect"):
    """Return sums over a window; unlike a running maximum, one NaN does not linger."""
    return ndimage.correlate1d(x, np.arange(1, 2 * width + 2), axis=axis, mode=mode)


def cut(draw, plan):
    """Return the plan with any chunks along what may be cut."""
    chunks = {dim: draw(st.integers(1, plan.lengths[dim])) for dim in plan.cuttable}
    return plan.with_chunks(**chunks)


def check(draw, engine, func, plain, *sources, **options):
    plan = cut(draw, barrow.plan(func, *sources, cluster=None, quiet=True, **options))
    result = barrow.run(replace(plan, engine=engine, threads=2)).result
    expected = np.asarray(plain)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("engine", ENGINES)
@EXAMPLES
@given(data=st.data())
def test_functions_of_single_items(engine, local_cluster, data):
    array = data.draw(arrays())

    def func(x):
        return np.where(x == 3, x, x * x).astype("f4" if x.dtype.kind == "i" else x.dtype)

    check(data.draw, engine, func, func(array), array)


@pytest.mark.parametrize("engine", ENGINES)
@EXAMPLES
@given(data=st.data())
def test_functions_of_neighbours(engine, local_cluster, data):
    array = data.draw(arrays().filter(lambda a: a.dtype.kind in "iuf"))
    widths = [data.draw(st.integers(0, length)) for length in array.shape]
    pairs = [(w, data.draw(st.integers(w, n))) for w, n in zip(widths, array.shape, strict=True)]
    border = data.draw(st.sampled_from(["reflect", "nearest", None, 0]))
    mode = {"reflect": "reflect", "nearest": "nearest", None: "mirror", 0: "constant"}[border]
    if border is None:
        # A mirror looks one item further than the data are long, which no function can.
        pairs = [(min(w, n - 1), h) for (w, h), n in zip(pairs, array.shape, strict=True)]

    def func(x):
        for axis, (width, _) in enumerate(pairs):
            x = add_neighbours(x, axis, width, mode)
        return x

    halo = {axis: pair[1] for axis, pair in enumerate(pairs)}
    check(data.draw, engine, func, func(array), array, halo=halo, border=border)


@pytest.mark.parametrize("engine", ENGINES)
@EXAMPLES
@given(data=st.data())
def test_functions_that_change_the_dimensions(engine, local_cluster, data):
    array = data.draw(arrays())
    axis = data.draw(st.integers(0, array.ndim - 1))
    order = data.draw(st.permutations(range(array.ndim)))
    changes = {
        "drop": lambda x: x[(slice(None),) * axis + (0,)],
        "largest": lambda x: x.max(axis=axis),
        "shorten": lambda x: np.flip(x, axis)[(slice(None),) * axis + (slice(None, None, 2),)],
        "lengthen": lambda x: np.concatenate([x, x], axis=axis),
        "add last": lambda x: np.stack([x, x, x], axis=-1),
        "add first": lambda x: x[None],
        "transpose": lambda x: x.transpose(order),
        "count": lambda x: np.count_nonzero(x, axis=axis),
    }
    func = changes[data.draw(st.sampled_from(sorted(changes)))]
    check(data.draw, engine, func, func(array), array, whole=(axis,))


@pytest.mark.parametrize("engine", ENGINES)
@EXAMPLES
@given(data=st.data())
def test_several_sources(engine, local_cluster, data):
    first = data.draw(arrays())
    start = data.draw(st.integers(0, first.ndim - 1))
    second = np.random.default_rng(0).integers(0, 2, first.shape[start:]).astype(bool)
    check(
        data.draw,
        engine,
        lambda x, m: np.where(m, x, x.dtype.type(0)),
        np.where(second, first, first.dtype.type(0)),
        first,
        second,
    )


@pytest.mark.parametrize("engine", ENGINES)
@EXAMPLES
@given(data=st.data())
def test_reductions(engine, local_cluster, data):
    array = data.draw(arrays().filter(lambda a: a.dtype.kind in "iu?"))
    plan = cut(data.draw, barrow.plan(np.sum, array, combine=lambda a, b: a + b, quiet=True))
    assert barrow.run(replace(plan, engine=engine, threads=2)).result == array.sum()


@settings(EXAMPLES, max_examples=8)
@given(data=st.data())
def test_sums_of_fractions_depend_on_the_cut_alone(local_cluster, data):
    array = data.draw(arrays().filter(lambda a: a.dtype.kind == "f"))

    def total(x):
        return np.nansum(x, axis=tuple(range(x.ndim)), dtype=x.dtype)

    plan = cut(data.draw, barrow.plan(total, array, combine=lambda a, b: a + b, quiet=True))
    fold = Fold(lambda a, b: a + b)
    for number, ranges in enumerate(plan.grid):
        fold.add((0, number), total(array[tuple(slice(*place) for place in ranges)]))
    for engine in ENGINES:
        for threads in (1, 2):
            plan = replace(plan, engine=engine, threads=threads)
            assert barrow.run(plan).result.tobytes() == fold.result().tobytes()


@pytest.mark.parametrize("engine", ENGINES)
@EXAMPLES
@given(data=st.data())
def test_pipelines(engine, local_cluster, data):
    array = data.draw(arrays().filter(lambda a: a.dtype.kind in "iuf"))
    halo = {axis: min(1, n) for axis, n in enumerate(array.shape)}
    steps = [
        barrow.Step(lambda x: x + x.dtype.type(1), name="add"),
        barrow.Step(lambda x: add_neighbours(x, 0, 1), name="first", halo=halo),
        barrow.Step(lambda x: add_neighbours(x, x.ndim - 1, 1), name="last", halo=halo),
        barrow.Step(lambda x: np.stack([x, -x]), name="stack"),
    ]
    plain = array
    for step in steps:
        plain = step.func(plain)
    check(data.draw, engine, steps, plain, array)
