"""A load from a plan that has not run: what its probes have measured, for every chunk."""

from math import prod
from statistics import NormalDist

import numpy as np

from barrow.errors import InputError
from barrow.forecasting.measured import RESTART_SECONDS, TURNING_SHARE, Measured
from barrow.model.plan import Plan
from barrow.model.site import WORKER_BYTES
from barrow.planning.layout import CHUNK_SECONDS, START_SECONDS
from barrow.simulating.load import Load, Stage

KINDS = 101
"""Of tasks: as many quantiles of how times scatter over the data."""


def foresee_plan(plan: Plan) -> Measured:
    """Return the load of a plan: of one stage, whose function was measured."""
    if plan.before:
        raise InputError(
            f"'{plan.name}' runs in {len(plan.stages)} stages. Run it once, and ask what_if of "
            "the run; or ask it of one of plan.stages."
        )
    if not plan.cost.is_measured:
        raise InputError(
            f"'{plan.name}' has too little to do to be measured before it runs: run it, and ask "
            "what_if of the run."
        )
    cost, size = plan.cost, prod(plan.grid.chunk.values())
    share = size / max(1, prod(plan.lengths.values()))
    stored = share * plan.result_bytes if plan.result == "store" else 0.0
    read = plan.items * np.dtype(plan.reads[0]).itemsize if plan.reads else 0.0
    around = read * cost.read_seconds_per_byte + stored * cost.write_seconds_per_byte
    if stored:
        around += cost.write_seconds_per_chunk
    load = Load(
        cpu_seconds=cost.seconds(plan.items) * list_scatter(cost.spread) + around,
        disk_bytes=np.full(KINDS, float(read * (cost.read_seconds_per_byte > 0) + stored)),
        peak_bytes=np.array([cost.peak_bytes(plan.items)]),
        tasks=plan.n_chunks,
        scheduler_seconds=CHUNK_SECONDS[plan.engine],
        client_seconds=START_SECONDS[plan.engine] + cost.startup_seconds,
        restart_seconds=RESTART_SECONDS,
        crowding=cost.crowding(plan.items, in_threads=plan.threads > 1),
        turning_share=TURNING_SHARE,
        worker_bytes=WORKER_BYTES if plan.engine in ("processes", "dask") else 0,
        client_bytes=WORKER_BYTES,
        is_one_machine=plan.is_local,
    )
    cores = float(plan.cores) if plan.is_local else np.inf
    return Measured(plan.name, load, Stage(plan.workers, plan.threads, cores), plan.seconds, plan)


def list_scatter(spread: float) -> np.ndarray:
    """Return factors with a mean of 1 that scatter by so much, evenly over their quantiles.

    Examples
    --------
    >>> factors = list_scatter(0.2)
    >>> round(float(factors.mean()), 6), bool(0.15 < factors.std() < 0.21)
    (1.0, True)
    """
    normal = NormalDist()
    places = [normal.inv_cdf((number + 0.5) / KINDS) for number in range(KINDS)]
    factors = np.maximum(0.05, 1 + spread * np.array(places))
    return np.asarray(factors / factors.mean())
