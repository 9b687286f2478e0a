"""The chunks of a run of barrow's own, in the shape of Dask's tasks."""

from collections.abc import Mapping
from typing import Any

import pandas as pd


def read_own_tasks(chunks: pd.DataFrame, plan: Mapping[str, Any], host: str) -> pd.DataFrame:
    """Return a row for each call: chunks that were computed together are one."""
    calls = chunks.drop_duplicates(["worker", "started"]).reset_index(drop=True)
    cells = calls["cells"].astype(float)
    spent = calls[["read_seconds", "compute_seconds", "write_seconds"]].astype(float)
    spent = spent.mul(cells, axis=0)
    started = calls["started"].astype(float)
    ended = started + spent.sum(axis=1)
    pids = calls["worker"].astype(str).str.partition("/")
    return pd.DataFrame(
        {
            "step": str(plan.get("name", "chunk")),
            "key": "chunk " + calls["chunk"].astype(str),
            "worker": host + "/" + (pids[0] if len(calls) else ""),
            "thread": pids[2] if len(calls) else "",
            "ready": started,
            "started": started,
            "began": started,
            "ended": ended,
            "compute_seconds": ended - started,
            "send_seconds": 0.0,
            "spill_seconds": 0.0,
            "read_seconds": spent["read_seconds"],
            "write_seconds": spent["write_seconds"],
            "cpu_seconds": calls["cpu_seconds"].astype(float) * cells,
            "received_bytes": 0.0,
            "read_bytes": calls["read_bytes"].astype(float) * cells,
            "result_bytes": calls["written_bytes"].astype(float) * cells,
            "peak_bytes": calls["peak_bytes"].astype(float),
            "attempt": 1,
            "outcome": "done",
            "error": None,
        }
    )
