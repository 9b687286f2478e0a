"""The public functions: where the layers meet.

Sources are opened, steps are probed, a plan is made, and carried out. Each of
these is done elsewhere; here they are put together.
"""

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any

from barrow.errors import InputError
from barrow.executing import execute
from barrow.model.applied import Form, apply_step, join_lengths, leaves
from barrow.model.cost import Cost
from barrow.model.grid import Grid
from barrow.model.plan import Plan
from barrow.model.run import Run
from barrow.model.site import Site
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.planning.planner import cuttable_dims, list_rungs, make_plan
from barrow.probing.costs import choose_samples, count_items, measure_cost
from barrow.probing.probe import learn_form
from barrow.shared import Ranges
from barrow.sites.machine import read_machine
from barrow.sources.opening import open_source
from barrow.units import parse_bytes

Halo = Mapping[Any, int | tuple[int, int]]

# Work on so little data is over before a measurement of it would be.
TINY_BYTES = 2**18
# A step that would stop data of more than this share of the memory from being cut is not fused.
FUSED_SHARE = 0.05


def open(data: Any, *, name: str | None = None, dims: Sequence[str] | None = None) -> Source:
    """Open data without reading them.

    Parameters
    ----------
    data
        A NumPy, Dask, xarray, Zarr or h5py array; or the path of a ``.npy``,
        Zarr, OME-Zarr, HDF5 or TIFF file.
    name
        Which array of a file or group is meant.
    dims
        Names for the dimensions, where the data have none or others are wanted.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> barrow.open(np.zeros((3, 4)), dims=("y", "x")).lengths
    {'y': 3, 'x': 4}
    """
    return open_source(data, name=name, dims=dims)


def plan(
    func: Callable[..., Any] | Step | Sequence[Step | Callable[..., Any]],
    *sources: Any,
    whole: Collection[str | int] = (),
    halo: Halo | None = None,
    border: str | float | None = "reflect",
    to: str | PathLike[str] | None = None,
    memory: str | int | None = None,
    cluster: Any = None,
    resume: bool = True,
    name: str | None = None,
    quiet: bool = False,
    kwargs: Mapping[str, Any] | None = None,
    combine: Callable[[Any, Any], Any] | None = None,
) -> Plan:
    """Measure a function on a little of the data and plan how to run it on all.

    Nothing is computed but a few small blocks. Print the plan to see chunks,
    workers, predicted time and memory, and the reasons; run it with
    :func:`barrow.run`. The arguments are those of :func:`barrow.map`, and
    ``combine`` for a reduction; ``func`` may be a list of steps.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> plan = barrow.plan(np.sqrt, np.ones((6, 8)), name="root")
    >>> print(plan)  # doctest: +SKIP
    >>> barrow.run(plan).result.shape
    (6, 8)
    """
    steps = _as_steps(func, whole, halo, border, kwargs, name, combine)
    options = {"to": to, "resume": resume, "quiet": quiet, "memory": memory, "cluster": cluster}
    with _site(cluster) as (site, _):
        return _plan_fused(steps, _open_all(sources), site, options)


def run(
    work: Plan | Step | Callable[..., Any] | Sequence[Step | Callable[..., Any]],
    *sources: Any,
    to: str | PathLike[str] | None = None,
    folder: str | PathLike[str] | None = None,
    memory: str | int | None = None,
    cluster: Any = None,
    resume: bool = True,
    quiet: bool = False,
) -> Run:
    """Run a plan, a step, or a pipeline of steps.

    Parameters
    ----------
    work
        A plan made by :func:`barrow.plan`; or steps, applied one after the
        other. Steps that can be cut alike are fused: what lies between them is
        never stored.
    sources
        What the first step reads; none for a plan.
    folder
        Where to keep plan, record and numbers of the run.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> steps = [barrow.Step(np.sqrt, name="root"), barrow.Step(np.negative, name="minus")]
    >>> run = barrow.run(steps, np.full((4, 5), 9.0))
    >>> float(run.result[0, 0]), run.plan.steps
    (-3.0, ('root', 'minus'))
    """
    given = {"to": to, "folder": folder, "resume": resume, "quiet": quiet}
    if isinstance(work, Plan):
        return _run_plan(work, sources, {k: v for k, v in given.items() if v}, cluster, memory)
    steps = _as_steps(work, (), None, "reflect", None, None, None)
    return _run_steps(steps, _open_all(sources), {**given, "memory": memory}, cluster)


def map(
    func: Callable[..., Any],
    *sources: Any,
    whole: Collection[str | int] = (),
    halo: Halo | None = None,
    border: str | float | None = "reflect",
    to: str | PathLike[str] | None = None,
    memory: str | int | None = None,
    cluster: Any = None,
    resume: bool = True,
    name: str | None = None,
    quiet: bool = False,
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Apply a function to data of any size and put its answers together.

    The result is what ``func(*sources, **kwargs)`` would return for data that fit
    in memory. The function is called with NumPy arrays: chunks that barrow chose
    after measuring it.

    Parameters
    ----------
    func
        Takes one array for each source and returns one array. It may keep the
        shape, change the dtype, and change, drop or add dimensions; a dimension
        that it changes or drops is never cut.
    sources
        What to read: NumPy, Dask, xarray, Zarr or h5py arrays, paths, or sources
        from :func:`barrow.open`. Several must agree in the length of dimensions
        of the same name; unnamed ones line up with the last dimensions of the
        first source.
    whole
        Dimensions that must not be cut, because the function needs all of them
        at once. Names, or axis numbers.
    halo
        Neighbours the function needs around each chunk, by dimension, for
        example ``{"y": 16, "x": 16}``. They are trimmed from the answer.
    border
        What the halo holds beyond the edge of the data: ``"reflect"``,
        ``"mirror"``, ``"nearest"`` as in ``scipy.ndimage``, a number, or None:
        then there is no padding, and the function meets the edge itself.
    to
        Path of a Zarr store for the result. It appears when it is whole. The
        same call again returns it, and takes up an interrupted run.
    memory
        Most memory that the run may use, for example ``"4GB"``; by default most
        of what is free.
    cluster
        A cluster from :func:`barrow.cluster`, a Dask client or an address; False
        for no parallel work. By default a Dask client that is alive is used, and
        without one barrow decides by measurement.
    resume
        Whether to use what an earlier, same call has left at ``to``.
    name
        What plan and progress call this step.
    quiet
        Show no progress.
    kwargs
        Keyword arguments for the function.

    Returns
    -------
    array
        An array in memory; a DataArray for a DataArray, with names, coordinates
        and attributes kept. With ``to``, or when the result does not fit the
        memory, the same as a Zarr array that is read when indexed.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> image = np.arange(12.0).reshape(3, 4)
    >>> barrow.map(np.sqrt, image)[0]
    array([0.        , 1.        , 1.41421356, 1.73205081])
    """
    steps = _as_steps(func, whole, halo, border, kwargs, name, None)
    options = {"to": to, "resume": resume, "quiet": quiet, "memory": memory}
    return _run_steps(steps, _open_all(sources), options, cluster).result


def reduce(
    func: Callable[..., Any],
    *sources: Any,
    combine: Callable[[Any, Any], Any] = operator.add,
    whole: Collection[str | int] = (),
    halo: Halo | None = None,
    border: str | float | None = "reflect",
    memory: str | int | None = None,
    cluster: Any = None,
    name: str | None = None,
    quiet: bool = False,
    kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Apply a function to every chunk of the data and add its answers up.

    Answers are combined in an order that depends on the chunks alone, so the
    total does not change with the number of workers or their speed.

    Parameters
    ----------
    func
        Takes one array for each source and returns anything that can be combined.
    combine
        Takes two answers, of neighbouring chunks in order, and returns one.

    The other arguments are those of :func:`barrow.map`.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> int(barrow.reduce(np.sum, np.arange(100)))
    4950
    >>> barrow.reduce(lambda x: {int(x.max())}, np.arange(100), combine=set.union)
    {99}
    """
    steps = _as_steps(func, whole, halo, border, kwargs, name, combine)
    options = {"quiet": quiet, "memory": memory}
    return _run_steps(steps, _open_all(sources), options, cluster).result


def cluster(
    where: Any = None,
    *,
    workers: int | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
) -> Any:
    """Return a cluster to run on: a live one, one of this machine, or one at an address.

    Parameters
    ----------
    where
        None: attach to the Dask client that is alive, else start one on this
        machine. ``"local"``: start one on this machine. An address, a Dask
        client or cluster: attach to it.
    workers, threads, memory
        For this machine: number of worker processes, threads of each, and memory
        of each, for example ``"5GB"``. By default all cores and most free memory.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> with barrow.cluster("local", workers=2, threads=1, memory="500MB") as cluster:
    ...     barrow.map(np.sqrt, np.full((4, 5), 9.0))[0]
    array([3., 3., 3., 3., 3.])
    """
    from barrow.sites.opening import open_cluster

    return open_cluster(where, workers=workers, threads=threads, memory=memory)


def _as_steps(
    func: Any,
    whole: Collection[str | int],
    halo: Halo | None,
    border: str | float | None,
    kwargs: Mapping[str, Any] | None,
    name: str | None,
    combine: Callable[[Any, Any], Any] | None,
) -> list[Step]:
    if isinstance(func, Step):
        func = [func]
    if isinstance(func, (list, tuple)):
        if not func:
            raise InputError("There is no step to run: the list is empty.")
        if whole or halo or kwargs or name or combine:
            raise InputError(
                "whole=, halo=, kwargs=, name= and combine= belong to the single steps here: "
                "write barrow.Step(func, whole=..., halo=...)."
            )
        steps = [step if isinstance(step, Step) else Step(step) for step in func]
    else:
        steps = [Step(func, name or "", whole, halo or {}, border, kwargs or {}, combine)]
    for step in steps[:-1]:
        if step.combine is not None:
            raise InputError(f"'{step.name}' is a reduction, so it must be the last step.")
    return steps


def _open_all(sources: Sequence[Any]) -> list[Source]:
    """Open what the user gave; name the dimensions of bare arrays after the first source."""
    if not sources:
        raise InputError("There is nothing to read: give at least one source.")
    opened = [open_source(source) for source in sources]
    first = opened[0]
    for index, source in enumerate(opened[1:], start=1):
        if not source.has_names and len(source.dims) <= len(first.dims):
            dims = first.dims[len(first.dims) - len(source.dims) :]
            lengths = dict(zip(dims, source.shape, strict=True))
            grain = dict(zip(dims, source.grain.values(), strict=True))
            opened[index] = replace(source, lengths=lengths, grain=grain)
    join_lengths(opened)
    return opened


@contextmanager
def _site(cluster: Any) -> Any:
    """Yield the site to plan for, and the handle of its cluster if it has one."""
    machine = read_machine()
    with ExitStack() as stack:
        handle = None
        if cluster is None or cluster is True:
            from barrow.sites.attached import find_client

            cluster = find_client()
        if cluster is not None and cluster is not False:
            from barrow.sites.attached import attach
            from barrow.sites.cluster import Cluster

            is_handle = isinstance(cluster, Cluster)
            handle = cluster if is_handle else stack.enter_context(attach(cluster))
        if handle is None:
            yield Site("process", machine), None
        else:
            handle.wait(1)
            yield handle.site(), handle


def _fuse(step: Step, inputs: Sequence[Source]) -> Source:
    """Return a step on its inputs as a source, after learning what it returns."""
    lengths = join_lengths(inputs)
    step = step.resolved(lengths)
    if step.combine is None:
        return apply_step(step, inputs, learn_form(step, inputs))
    whole = frozenset(str(dim) for dim in step.whole)
    form = Form(lengths, inputs[0].dtype, frozenset(lengths), whole)
    return apply_step(step, inputs, form)


def _plan_fused(
    steps: Sequence[Step], inputs: list[Source], site: Site, options: dict[str, Any]
) -> Plan:
    """Return the plan for steps that can all be fused."""
    target = _fuse(steps[0], inputs)
    for step in steps[1:]:
        longer = _fuse(step, [target])
        if not _is_worth_fusing(target, longer, site):
            raise InputError(
                f"'{step.name}' needs other chunks than '{target.name}', so there is no single "
                "plan. barrow.run does both, with the result in between stored; or plan each."
            )
        target = longer
    return _plan_target(target, site, options)


def _plan_target(target: Source, site: Site, options: dict[str, Any]) -> Plan:
    memory = options.get("memory")
    made = make_plan(
        target,
        cost=_measure(target, site, options),
        site=site,
        count_items=lambda lengths: count_items(target, _block(target, lengths, 0.5)),
        memory_bytes=None if memory is None else parse_bytes(memory),
        wants_store=options.get("to") is not None,
        may_be_parallel=options.get("cluster") is not False,
    )
    return replace(made, options=options)


def _measure(target: Source, site: Site, options: Mapping[str, Any]) -> Cost:
    """Return the cost of a chain of steps, measured at the sizes at which it may work."""

    def count(lengths: Mapping[str, int]) -> int:
        return count_items(target, _block(target, lengths, 0.5))

    total_items = count(target.lengths)
    itemsize = max(target.dtype.itemsize, *(leaf.dtype.itemsize for leaf in leaves(target)))
    if total_items * itemsize <= TINY_BYTES or 0 in target.shape:
        return Cost(peak_per_item=8.0 * itemsize, origin="guessed")
    rungs = list_rungs(target, count)
    samples = choose_samples(target, rungs, lambda rung, place: _block(target, rung, place))
    cores = site.machine.cores
    memory = options.get("memory")
    available = site.machine.available_bytes if memory is None else parse_bytes(memory)
    return measure_cost(
        target,
        samples,
        cores=cores,
        budget_bytes=site.limit_bytes or available // cores,
        is_stored=options.get("to") is not None or target.nbytes > available // 2,
    )


def _block(target: Source, lengths: Mapping[str, int], place: float) -> Ranges:
    """Return a block of these lengths at a place between the beginning and the end."""
    ranges = []
    for dim, length in target.lengths.items():
        size = min(length, lengths[dim])
        grid = Grid({dim: length}, {dim: max(1, size)})
        start = min(grid.ranges(int(len(grid) * place))[0][0], length - size)
        ranges.append((start, start + size))
    return tuple(ranges)


def _is_worth_fusing(target: Source, longer: Source, site: Site) -> bool:
    """Return whether a further step leaves the data as easy to cut as they were."""
    lost = set(cuttable_dims(target)) - set(cuttable_dims(longer))
    return not lost or target.nbytes < FUSED_SHARE * site.machine.available_bytes


def _run_steps(
    steps: Sequence[Step], inputs: list[Source], options: dict[str, Any], cluster: Any
) -> Run:
    """Fuse what can be fused, and store what lies between."""
    options = {**options, "cluster": cluster}
    with _site(cluster) as (site, handle):
        target = _fuse(steps[0], inputs)
        for step in steps[1:]:
            longer = _fuse(step, [target])
            if not _is_worth_fusing(target, longer, site):
                between = {"quiet": options.get("quiet", False), "cluster": cluster}
                checkpoint = execute(_plan_target(target, site, between), handle).result
                longer = _fuse(step, [open_source(checkpoint)])
            target = longer
        return execute(_plan_target(target, site, options), handle)


def _run_plan(
    given: Plan, sources: Sequence[Any], options: dict[str, Any], cluster: Any, memory: Any
) -> Run:
    if sources or given.target is None:
        raise InputError(
            "A plan runs with the function and the data it was made for. A plan that was read "
            "from a file has lost them: make it again with barrow.plan."
        )
    if memory is not None:
        raise InputError("memory= was decided when the plan was made: give it to barrow.plan.")
    cluster = cluster if cluster is not None else given.options.get("cluster")
    given = replace(given, options={**given.options, **options})
    with _site(cluster if given.engine == "dask" else False) as (_, handle):
        return execute(given, handle)
