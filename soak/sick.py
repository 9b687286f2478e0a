"""Programs that are ill, one for each finding, and the same after following the advice.

Each is run on a cluster of its own kind while barrow watches; see :mod:`soak.illnesses`.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from soak.ailing import (
    all_do_it,
    at_once,
    batched,
    block_loop,
    chain,
    cheap_halo,
    compute_for_long,
    crash_once,
    cut_anew,
    cut_once,
    dear_halo,
    do_not_block,
    do_not_retry,
    do_not_straggle,
    even_blocks,
    few_blocks,
    few_threads,
    hang,
    heavy,
    large_graph,
    light,
    many_blocks,
    many_threads,
    one_does_all,
    pack,
    pack_arrays,
    python_only,
    read_across,
    read_along,
    read_packed,
    retry,
    send_around,
    slow_machine,
    start_at_once,
    start_late,
    stay,
    stay_here,
    straggle,
    tiny,
    to_and_fro,
    twice,
    uneven_blocks,
    wait_for_disk,
    want_what_is_not_there,
)
from soak.ailing_memory import (
    do_not_spill,
    fill_client,
    forget,
    fragment,
    fragment_and_trim,
    gather_all,
    gather_little,
    kill_once,
    leak,
    spare_client,
    spill,
    stand_and_restart,
    stand_still,
)
from soak.looping import (
    loop_compiled,
    loop_in_python,
)
from soak.pieces import little

PAIR: Mapping[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "1GB"}
SINGLE: Mapping[str, Any] = {"n_workers": 1, "threads_per_worker": 4, "memory_limit": "2GB"}
SMALL: Mapping[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "400MB"}
ALONE: Mapping[str, Any] = {}
"""For what barrow itself does: there is no cluster, and a folder instead of a client."""
Work = Callable[[Any], object]


@dataclass(frozen=True)
class Sick:
    """A program with one illness."""

    code: str
    """What must be found."""
    names: str
    """What the claim must name: the step, or the worker."""
    work: Work
    """Takes a client."""
    cured: Work | None = None
    """The same after following the advice."""
    cluster: Mapping[str, Any] = field(default_factory=lambda: PAIR)
    cured_cluster: Mapping[str, Any] | None = None
    also: frozenset[str] = frozenset()
    """What is found besides, and is right."""
    is_lethal: bool = False
    """Whether it spoils its cluster for others."""
    environment: Mapping[str, str] = field(default_factory=dict)


HALF_OF_RAM = int(0.6 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))

SICK: Mapping[str, Sick] = {
    "a leak": Sick("MEM01", "remember", leak, lambda c: leak(c, forget), is_lethal=True),
    "killed at its limit": Sick(
        "MEM02",
        "swell",
        kill_once,
        lambda c: kill_once(c, 100),
        cluster=SMALL,
        also=frozenset({"MEM03"}),
        is_lethal=True,
    ),
    "killed and retried": Sick(
        "MEM03",
        "swell",
        kill_once,
        lambda c: kill_once(c, 100),
        cluster=SMALL,
        also=frozenset({"MEM02"}),
        is_lethal=True,
    ),
    "paused for ever": Sick(
        "MEM04",
        "orker",
        stand_still,
        stand_and_restart,
        cluster=SMALL,
        is_lethal=True,
    ),
    "spilling": Sick(
        "MEM05",
        "worker",
        spill,
        do_not_spill,
        cluster={**PAIR, "memory_limit": "600MB"},
        is_lethal=True,
    ),
    "fragmented": Sick("MEM06", "orker", fragment, fragment_and_trim, is_lethal=True),
    "limits beyond the machine": Sick(
        "MEM07",
        "2 workers",
        little,
        little,
        cluster={**PAIR, "memory_limit": HALF_OF_RAM},
        cured_cluster=PAIR,
        is_lethal=True,
    ),
    "one huge result": Sick(
        "MEM08", "finalize", gather_all, gather_little, cluster={**PAIR, "memory_limit": "800MB"}
    ),
    "a full client": Sick("MEM09", "client", fill_client, spare_client),
    "spare workers": Sick(
        "MEM10",
        "1 worker",
        chain,
        chain,
        cluster={**PAIR, "n_workers": 4},
        cured_cluster={**PAIR, "n_workers": 1},
    ),
    "small chunks": Sick("CHK01", "double", tiny, batched),
    "large chunks": Sick("CHK02", "sleep_block", few_blocks, many_blocks, cluster=SINGLE),
    "uneven chunks": Sick("CHK03", "make_rows", uneven_blocks, even_blocks),
    "misaligned chunks": Sick("CHK04", "from-zarr", read_across, read_along),
    "a dear halo": Sick("CHK05", "smooth", dear_halo, cheap_halo, cluster=ALONE),
    "uneven load": Sick("WRK01", "worker", one_does_all, all_do_it),
    "a straggler": Sick("WRK02", "'nap'", straggle, do_not_straggle),
    "a slow machine": Sick("WRK02", "machine", slow_machine),
    "too little to do": Sick("WRK03", "next task", chain, all_do_it),
    "nobody offers it": Sick("WRK04", "5 tasks", want_what_is_not_there, little),
    "to and fro": Sick("WRK05", "sent away", to_and_fro, stay, is_lethal=True),
    "a crash": Sick(
        "WRK06", "crash", crash_once, little, also=frozenset({"MEM03"}), is_lethal=True
    ),
    "a long task": Sick("WRK07", "'spin' has run on worker", compute_for_long, is_lethal=True),
    "a task that hangs": Sick("WRK07", "or hangs", hang, is_lethal=True),
    "the interpreter's lock": Sick(
        "CPU01", "spin", python_only, python_only, cluster=SINGLE, cured_cluster=PAIR
    ),
    "too many threads": Sick(
        "CPU02",
        "multiply",
        many_threads,
        few_threads,
        is_lethal=True,
        environment={"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    ),
    "a blocked loop": Sick("CPU03", "hold_lock", block_loop, do_not_block),
    "an event loop": Sick("CPU04", "count_near", loop_in_python, loop_compiled),
    "waiting for the disk": Sick("DAT01", "read_slowly", wait_for_disk, read_packed),
    "waiting for others": Sick("DAT02", "total", send_around, stay_here),
    "cutting anew": Sick("DAT03", "rechunk", cut_anew, cut_once),
    "a heavy graph": Sick("DAT04", "total", heavy, light),
    "a large graph": Sick("DAT05", "21,000 tasks", large_graph, tiny),
    "a slow start": Sick("DAT06", "orker", start_late, start_at_once, is_lethal=True),
    "computed twice": Sick("COD01", "slowly", twice, at_once),
    "tried again": Sick("COD02", "fail_once", retry, do_not_retry),
    "dear packing": Sick("COD03", "make_objects", pack, pack_arrays),
}
