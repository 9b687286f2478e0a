"""All rules, by the code of what they find. A code keeps its meaning for ever."""

from collections.abc import Callable, Iterator, Mapping

from barrow.diagnosing.facts import Facts
from barrow.diagnosing.rules import (
    chunks,
    code,
    cpu,
    data,
    deaths,
    growth,
    room,
    slurm,
    workers,
)
from barrow.model.finding import Finding

Rule = Callable[[Facts], Iterator[Finding]]

RULES: Mapping[str, Rule] = {
    "MEM01": growth.leak,
    "MEM02": deaths.killed_for_memory,
    "MEM03": deaths.retried_in_silence,
    "MEM04": deaths.paused_for_ever,
    "MEM05": room.spilling,
    "MEM06": growth.unmanaged,
    "MEM07": room.overcommitted,
    "MEM08": room.gathered,
    "MEM09": room.client_memory,
    "MEM10": room.spare_workers,
    "CHK01": chunks.too_small,
    "CHK02": chunks.too_large,
    "CHK03": chunks.uneven,
    "CHK04": chunks.misaligned,
    "CHK05": chunks.dear_halo,
    "WRK01": workers.uneven_load,
    "WRK02": workers.stragglers,
    "WRK03": workers.idle,
    "WRK04": workers.never_came,
    "WRK05": workers.thrashing,
    "WRK06": deaths.died_otherwise,
    "WRK07": workers.long_task,
    "CPU01": cpu.interpreter_lock,
    "CPU02": cpu.library_threads,
    "CPU03": cpu.blocked_loop,
    "CPU04": cpu.python_loop,
    "DAT01": data.disk_bound,
    "DAT02": data.transfers,
    "DAT03": data.rechunking,
    "DAT04": data.heavy_graph,
    "DAT05": data.large_graph,
    "DAT06": data.slow_start,
    "SLM01": slurm.pending,
    "SLM02": slurm.rejected,
    "SLM03": slurm.out_of_time,
    "SLM04": slurm.out_of_memory,
    "COD01": code.computed_twice,
    "COD02": code.retried,
    "COD03": code.serialising,
}
