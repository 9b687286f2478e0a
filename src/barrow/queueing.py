"""Plan for jobs that are not there yet, then ask for jobs that suffice for the plan."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from typing import Any

from barrow.errors import BudgetError, InputError
from barrow.model.plan import Plan
from barrow.model.site import THREADS, WORKER_BYTES, Offer, Site
from barrow.model.step import Step
from barrow.planning.layout import task_budget, worker_limit
from barrow.sites.cluster import Cluster
from barrow.sites.jobs import GPU
from barrow.sites.machine import read_machine
from barrow.sites.partitions import Node, Partition, choose_partition
from barrow.sites.slurm import DEFAULT_JOBS, SlurmOptions, read_partitions, start_slurm
from barrow.units import format_bytes

# An interpreter with its libraries, and some room.
LEAST_JOB_BYTES = 512 * 2**20


def is_queue(cluster: Any) -> bool:
    """Return whether what was given as a cluster means jobs that have to be asked for."""
    return isinstance(cluster, str) and cluster == "slurm"


def plan_for_queue(make_plan: Callable[[Site], Plan], steps: Sequence[Step]) -> Plan:
    """Return a plan for jobs with as little memory as it can be made for.

    At first a job gets the memory that belongs to its core, so that all cores of a node
    can work. If no chunk fits that, it may take more, up to a whole node. Beside that a job
    has what one task of the steps asks for.
    """
    machine = read_machine()
    asked = merge_asked(step.resources for step in steps)
    check_asked(asked)
    partitions = read_partitions()
    choose_partition(partitions)  # refuses a cluster in which nothing is up
    refused: BudgetError | None = None
    for limit in list_limits([node for partition in partitions for node in partition.nodes]):
        offer = Offer(int(asked.get(THREADS, 1)), limit, resources=asked)
        crew = {f"to come {number}": offer for number in range(DEFAULT_JOBS)}
        site = Site("dask", machine, DEFAULT_JOBS, 1, limit, is_local=False, crew=crew)
        try:
            return make_plan(site)
        except BudgetError as error:
            refused = error
    most, name = max((node.memory_bytes, p.name) for p in partitions for node in p.nodes)
    reason = str(refused).partition("\n")[0]
    raise BudgetError(
        f"{reason} The largest partition, {name!r}, has nodes of {format_bytes(most)}."
    ) from refused


def list_limits(nodes: Sequence[Node]) -> list[int]:
    """Return the memory limits to plan for, in order: shares of a core, then whole nodes.

    Examples
    --------
    >>> nodes = [Node("a", 4, 8 * 2**30), Node("b", 4, 16 * 2**30)]
    >>> [round(limit / 2**30, 1) for limit in list_limits(nodes)]
    [2.0, 4.0, 10.6, 21.3]

    Those of nodes are larger than the nodes: a plan keeps a quarter free of what it may
    use, for what is not given back at once. Here that is not asked for: the peak has a margin
    of its own.
    """
    shares = sorted({node.share_bytes for node in nodes})
    whole = sorted({node.memory_bytes for node in nodes})
    return [*shares, *(worker_limit(size - WORKER_BYTES, 1) for size in whole)]


def choose_options(plan: Plan, partitions: Sequence[Partition]) -> SlurmOptions:
    """Return what to ask of SLURM for a plan: the smallest partition that suffices.

    What suffices is the upper bound of the predicted peak, and the worker itself.
    """
    peak = max(stage.peak_bound_bytes for stage in plan.stages)
    needed = max(LEAST_JOB_BYTES, peak + WORKER_BYTES)
    asked = merge_asked(stage.resources for stage in plan.stages)
    cores = int(asked.get(THREADS, 1))
    chosen = choose_partition(partitions, needed, cores=cores)
    most = max(node.memory_bytes for node in chosen.list_sufficient(needed, cores)[:1])
    return SlurmOptions(
        partition=chosen.name,
        jobs=min(DEFAULT_JOBS, max(stage.n_chunks for stage in plan.stages)),
        cores=cores,
        sbatch=[f"--gres=gpu:{ceil(asked[GPU])}"] if GPU in asked else [],
        memory=max(needed, min(most, worker_limit(peak, 1))),
        quiet=bool(plan.options.get("quiet")),
    )


def merge_asked(resources: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the most that is asked for of each resource.

    Examples
    --------
    >>> merge_asked([{"GPU": 1}, {"threads": 4, "GPU": 0.5}])
    {'GPU': 1, 'threads': 4}
    """
    most: dict[str, float] = {}
    for asked in resources:
        for name, amount in asked.items():
            most[name] = max(amount, most.get(name, 0.0))
    return most


def check_asked(asked: Mapping[str, float]) -> None:
    """Refuse resources of which it is not known how to ask SLURM for them."""
    for name, amount in asked.items():
        if name not in (GPU, THREADS):
            raise InputError(
                f"resources={{{name!r}: {amount:g}}} cannot be asked of SLURM by that name. "
                "Open the jobs first and say what each has, as in "
                f"barrow.cluster('slurm', resources={{{name!r}: {amount:g}}}, sbatch=[...])."
            )


@contextmanager
def jobs_for(plan: Plan) -> Iterator[tuple[Plan, Cluster]]:
    """Ask for jobs that suffice for a plan; yield the plan as they can do it, and the jobs."""
    options = choose_options(plan, read_partitions())
    with start_slurm(options) as cluster:
        yield fit_to_jobs(plan, int(options.memory or 0), int(options.jobs)), cluster


def fit_to_jobs(plan: Plan, memory_bytes: int, jobs: int) -> Plan:
    """Return a plan whose tasks may use what a job has."""

    def fit(stage: Plan) -> Plan:
        budget = max(task_budget(memory_bytes, 1), stage.peak_bound_bytes)
        most = max(1, memory_bytes - WORKER_BYTES)
        return replace(stage, budget_bytes=min(budget, most), workers=jobs, threads=1)

    return replace(fit(plan), before=tuple(fit(stage) for stage in plan.before))
