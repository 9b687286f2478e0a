"""The public functions: where the layers meet.

Sources are opened, steps are probed, a plan is made, and carried out. Each of
these is done elsewhere; here they are put together.
"""

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from barrow.composing import (
    Halo,
    as_steps,
    check_options,
    find_site,
    open_all,
)
from barrow.errors import InputError
from barrow.explaining import write_report
from barrow.model.plan import Plan
from barrow.model.run import Run
from barrow.model.site import Site
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.pipelines import plan_alike, plan_pipeline, run_pipeline
from barrow.queueing import is_queue, jobs_for, plan_for_queue
from barrow.sources.opening import open_source

OnError = Literal["stop", "skip"]


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
    on_error: OnError = "stop",
    name: str | None = None,
    quiet: bool = False,
    kwargs: Mapping[str, Any] | None = None,
    resources: Mapping[str, float] | None = None,
    combine: Callable[[Any, Any], Any] | None = None,
    like: Plan | str | PathLike[str] | None = None,
) -> Plan:
    """Measure a function on a little of the data and plan how to run it on all.

    Nothing is computed but a few small blocks, and not even these if the function
    has been measured before on data of this kind. Print the plan to see chunks,
    workers, predicted time and memory, and the reasons; run it with
    :func:`barrow.run`. The arguments are those of :func:`barrow.map`, and
    ``combine`` for a reduction.

    ``func`` may be a list of steps. Where a step needs other chunks than those
    before it, the plan has stages: ``plan.before`` are those that run first, each a
    plan of its own; what lies between them is kept only as long as it is needed.

    Parameters
    ----------
    like
        A plan, or the path of a saved one, whose chunks, workers and cost are used
        instead of measuring. Lengths may differ; what does not fit the steps, the
        data or this machine is one error.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> plan = barrow.plan(np.sqrt, np.ones((6, 8)), name="root")
    >>> print(plan)  # doctest: +SKIP
    >>> barrow.run(plan).result.shape
    (6, 8)
    """
    steps = as_steps(func, whole, halo, border, kwargs, name, combine, resources)
    options = {
        "to": to,
        "resume": resume,
        "on_error": on_error,
        "quiet": quiet,
        "memory": memory,
        "cluster": cluster,
    }
    inputs = open_all(sources)
    check_options(options)
    model = _open_plan(like)
    if is_queue(cluster):
        return plan_for_queue(lambda site: _plan_steps(steps, inputs, site, options, model), steps)
    with find_site(cluster) as (site, _):
        return _plan_steps(steps, inputs, site, options, model)


def run(
    work: Plan | Step | Callable[..., Any] | Sequence[Step | Callable[..., Any]],
    *sources: Any,
    to: str | PathLike[str] | None = None,
    folder: str | PathLike[str] | None = None,
    memory: str | int | None = None,
    cluster: Any = None,
    resume: bool | None = None,
    on_error: OnError | None = None,
    quiet: bool = False,
    act: bool = True,
    like: Plan | str | PathLike[str] | None = None,
) -> Run:
    """Run a plan, a step, or a pipeline of steps.

    Parameters
    ----------
    work
        A plan made by :func:`barrow.plan`; or steps, applied one after the
        other. Steps that can be cut alike are fused: what lies between them is
        never stored. Otherwise they run in stages, with a result in between.
    sources
        What the first step reads; none for a plan.
    folder
        Where to keep plan, record and numbers of the run.
    resume, on_error
        As for :func:`barrow.map`; by default what the plan says.
    act
        Whether to free workers that are paused for ever, rather than only say so.
    like
        For steps: a plan, or the path of a saved one, to use instead of measuring.

    Returns
    -------
    Run
        Its ``plan`` shows what was measured beside what was predicted.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> steps = [barrow.Step(np.sqrt, name="root"), barrow.Step(np.negative, name="minus")]
    >>> run = barrow.run(steps, np.full((4, 5), 9.0))
    >>> float(run.result[0, 0]), run.plan.steps
    (-3.0, ('root', 'minus'))
    """
    options = {"to": to, "folder": folder, "resume": resume, "on_error": on_error}
    given = {name: value for name, value in options.items() if value is not None}
    if quiet:
        given["quiet"] = True
    if not act:
        given["act"] = False
    if isinstance(work, Plan):
        if like is not None:
            raise InputError("like= is for steps and data; a plan is run as it is.")
        return _run_plan(work, sources, given, cluster, memory)
    steps = as_steps(work)
    return _run_steps(steps, open_all(sources), {**given, "memory": memory}, cluster, like)


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
    on_error: OnError = "stop",
    name: str | None = None,
    quiet: bool = False,
    kwargs: Mapping[str, Any] | None = None,
    resources: Mapping[str, float] | None = None,
    act: bool = True,
    like: Plan | str | PathLike[str] | None = None,
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
        A cluster from :func:`barrow.cluster`, a Dask client or an address; ``"slurm"``
        for jobs of the size that the plan needs; False for no parallel work. By
        default a Dask client that is alive is used, and without one barrow decides
        by measurement.
    resume
        Whether to use what an earlier, same call has left at ``to``.
    on_error
        What happens when the function raises: ``"stop"`` ends the run with its error,
        chunks that are done are kept; ``"skip"`` leaves the chunk out and goes on. The
        result then holds NaN there, or 0 where its dtype has no NaN, a warning says so,
        and ``barrow.run(...).skipped`` lists the chunks with reason and attempts.
    name
        What plan and progress call this step.
    quiet
        Show no progress.
    kwargs
        Keyword arguments for the function.
    resources
        What a task needs to itself while it runs, for example ``{"GPU": 1}``. See
        :class:`barrow.Step`.
    act
        Whether to free workers that are paused for ever, rather than only say so.
    like
        A plan, or the path of a saved one, to use instead of measuring: for the
        same function on other data of the same kind. See :func:`barrow.plan`.

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
    steps = as_steps(func, whole, halo, border, kwargs, name, None, resources)
    options = {
        "to": to,
        "resume": resume,
        "on_error": on_error,
        "quiet": quiet,
        "memory": memory,
        "act": act,
    }
    return _run_steps(steps, open_all(sources), options, cluster, like).result


def reduce(
    func: Callable[..., Any],
    *sources: Any,
    combine: Callable[[Any, Any], Any] = operator.add,
    whole: Collection[str | int] = (),
    halo: Halo | None = None,
    border: str | float | None = "reflect",
    memory: str | int | None = None,
    cluster: Any = None,
    on_error: OnError = "stop",
    name: str | None = None,
    quiet: bool = False,
    kwargs: Mapping[str, Any] | None = None,
    resources: Mapping[str, float] | None = None,
    act: bool = True,
    like: Plan | str | PathLike[str] | None = None,
) -> Any:
    """Apply a function to every chunk of the data and add its answers up.

    Answers are combined in an order that depends on the chunks alone, so the
    total does not change with the number of workers or their speed.

    The other arguments are those of :func:`barrow.map`. With ``on_error="skip"``
    chunks on which the function fails are left out of the total.

    Parameters
    ----------
    func
        Takes one array for each source and returns anything that can be combined.
    combine
        Takes two answers, of neighbouring chunks in order, and returns one.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> int(barrow.reduce(np.sum, np.arange(100)))
    4950
    >>> barrow.reduce(lambda x: {int(x.max())}, np.arange(100), combine=set.union)
    {99}
    """
    steps = as_steps(func, whole, halo, border, kwargs, name, combine, resources)
    options = {"on_error": on_error, "quiet": quiet, "memory": memory, "act": act}
    return _run_steps(steps, open_all(sources), options, cluster, like).result


def resume(
    folder: str | PathLike[str],
    *,
    memory: str | int | None = None,
    cluster: Any = None,
    quiet: bool = False,
) -> Run:
    """Finish a run that was interrupted or killed, without the script that began it.

    Chunks that are done are checked and kept. Workers are chosen for where this is
    called. A function or data that have changed since are an error; so are data that
    were only in memory: then make the same call again, which goes on as well.

    What is opened is code that a run of yours has stored there, as
    ``python your_script.py`` would run it. That of other people is refused.

    Parameters
    ----------
    folder
        Where the result goes to, as it was given as ``to``; or the hidden folder
        ``.NAME.partial`` beside it.
    memory, cluster, quiet
        As for :func:`barrow.map`; by default memory is as it was.

    Returns
    -------
    Run
        Also of a run that is finished already.

    Examples
    --------
    >>> import barrow, numpy as np, tempfile
    >>> place = f"{tempfile.mkdtemp()}/root.zarr"
    >>> root = barrow.map(np.sqrt, np.full((4, 5), 9.0), to=place)
    >>> float(barrow.resume(place).result[0, 0])
    3.0
    """
    from barrow.resuming import resume_run

    return resume_run(folder, memory=memory, cluster=cluster, quiet=quiet)


def cluster(
    where: Any = None,
    *,
    workers: int | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    resources: Mapping[str, float] | None = None,
    **slurm: Any,
) -> Any:
    """Return a cluster to run on: a live one, one of this machine, jobs, or one at an address.

    Parameters
    ----------
    where
        None: attach to the Dask client that is alive, else start one on this
        machine. ``"local"``: start one on this machine. ``"slurm"``: ask for jobs. An
        address, a scheduler file, a Dask client or cluster: attach to it.
    workers, threads
        For this machine: number of worker processes, and threads of each. By
        default all cores.
    memory
        Memory of each worker, for example ``"5GB"``. By default most free memory of
        this machine; in a job, that of its cores.
    resources
        What there is for tasks that ask for it, for example ``{"GPU": 2}``: on this machine,
        by default one of each; or in each job, by default what ``sbatch`` asks for.
    slurm
        For ``"slurm"`` only:

        - ``partition``: by default the smallest in which a job has room for ``memory``;
        - ``jobs``: how many (8), each a worker with ``cores`` (1); ``"auto"`` for as many as
          the work can use;
        - ``walltime``: seconds, ``"2h"`` or ``"1:30:00"``; ``account``;
        - ``timeout``: seconds to wait for the first worker (360);
        - ``interface``: the network card to use; by default the one that leads to the nodes;
        - ``setup``: lines of shell for each job, such as ``["module load python"]``;
        - ``sbatch``: further options, such as ``["--gres=gpu:1"]``;
        - ``folder``: where jobs write, in a place that all nodes see;
        - ``quiet``: say nothing while waiting.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> with barrow.cluster("local", workers=2, threads=1, memory="500MB") as cluster:
    ...     barrow.map(np.sqrt, np.full((4, 5), 9.0))[0]
    array([3., 3., 3., 3., 3.])
    """
    from barrow.sites.opening import open_cluster

    sizes: dict[str, Any] = {
        "workers": workers,
        "threads": threads,
        "memory": memory,
        "resources": resources,
    }
    return open_cluster(where, **sizes, **slurm)


def report(folder: str | PathLike[str], *, to: str | PathLike[str] | None = None) -> Path:
    """Write the report of a run, and return the path of its page.

    One HTML file that needs no network, and ``report.json`` with the same as data. Runs
    that last long enough write theirs by themselves; this makes one for any run, also for
    one that was killed or still goes on.

    Parameters
    ----------
    folder
        The folder of a run, or the place of its stored result.
    to
        Folder for the files, where that of the run cannot be written.

    Examples
    --------
    >>> import barrow, numpy as np
    >>> run = barrow.run(barrow.plan(np.sqrt, np.full((4, 5), 9.0)))
    >>> barrow.report(run.folder).name
    'report.html'
    """
    return write_report(folder, to)


def _plan_steps(
    steps: Sequence[Step],
    inputs: Sequence[Source],
    site: Site,
    options: Mapping[str, Any],
    like: Plan | None,
) -> Plan:
    if like is None:
        return plan_pipeline(steps, inputs, site, options)
    return plan_alike(steps, inputs, site, options, like)


def _run_steps(
    steps: Sequence[Step],
    inputs: Sequence[Source],
    options: dict[str, Any],
    cluster: Any,
    like: Any,
) -> Run:
    """Plan and run: fuse what can be fused, and keep what lies between."""
    options = {**options, "cluster": cluster}
    check_options(options)
    model = _open_plan(like)
    if is_queue(cluster):
        return _run_in_jobs(
            plan_for_queue(lambda site: _plan_steps(steps, inputs, site, options, model), steps)
        )
    with find_site(cluster) as (site, handle):
        return run_pipeline(_plan_steps(steps, inputs, site, options, model), site, handle)


def _run_plan(
    given: Plan, sources: Sequence[Any], options: dict[str, Any], cluster: Any, memory: Any
) -> Run:
    if sources or given.target is None:
        raise InputError(
            "A plan runs with the function and the data it was made for. A plan that was read "
            "from a file has lost them: make it again with barrow.plan(func, data, like=plan)."
        )
    if memory is not None:
        raise InputError("memory= was decided when the plan was made: give it to barrow.plan.")
    cluster = cluster if cluster is not None else given.options.get("cluster")
    check_options(options)
    shared = ("quiet", "resume", "on_error")
    for_all = {name: value for name, value in options.items() if name in shared}
    before = tuple(replace(s, options={**s.options, **for_all}) for s in given.before)
    given = replace(given, options={**given.options, **options}, before=before)
    if is_queue(cluster):
        return _run_in_jobs(given)
    uses_dask = any(stage.engine == "dask" for stage in given.stages)
    with find_site(cluster if uses_dask else False) as (site, handle):
        return run_pipeline(given, site, handle)


def _run_in_jobs(plan: Plan) -> Run:
    with jobs_for(plan) as (ready, handle):
        return run_pipeline(ready, handle.site(), handle)


def _open_plan(like: Any) -> Plan | None:
    """Return the plan that was given as it is or by its path, and check it in either case."""
    if like is None:
        return None
    if isinstance(like, Plan):
        return Plan.from_json(like.to_json(), where="like=")
    if isinstance(like, (str, PathLike)):
        return Plan.load(like)
    raise InputError(f"like={like!r} is no plan. Give a barrow.Plan, or the path of a saved one.")
