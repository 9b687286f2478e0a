"""Memory of workers at quiet moments: between tasks, when only what stays is held."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from barrow.diagnosing.facts import Facts

SETTLE_SECONDS = 0.3
"""After a task, until what it held is given back and Dask has said what it keeps."""


@dataclass(frozen=True)
class Quiet:
    """One worker when it rests: a value for each time it rested."""

    process: str
    time: np.ndarray
    rss_bytes: np.ndarray
    managed_bytes: np.ndarray
    tasks_before: np.ndarray
    """How many tasks it had done until then."""

    @property
    def unmanaged_bytes(self) -> np.ndarray:
        """What the process held and Dask does not know of."""
        return np.asarray(np.maximum(0, self.rss_bytes - self.managed_bytes))


def find_quiet(facts: Facts) -> list[Quiet]:
    """Return the quiet moments of each worker, the first one left out: it includes imports."""
    found = []
    for process in facts.workers.index[facts.workers["kind"] == "worker"]:
        samples, tasks = facts.samples_of.get(process), facts.ran[facts.ran["worker"] == process]
        if samples is None or tasks.empty:
            continue
        rested = _rest(process, samples[samples["managed_bytes"].notna()], tasks)
        if rested is not None:
            found.append(rested)
    return found


def _rest(process: str, samples: pd.DataFrame, tasks: pd.DataFrame) -> Quiet | None:
    time = samples["time"].to_numpy()
    starts = np.sort(tasks["started"].to_numpy())
    ends = np.sort(tasks["ended"].to_numpy())
    begun, ended = np.searchsorted(starts, time), np.searchsorted(ends, time)
    latest = ends[np.maximum(0, ended - 1)]
    is_quiet = (begun == ended) & (ended > 0) & (time - latest > SETTLE_SECONDS)
    if not is_quiet.any():
        return None
    rested = samples[is_quiet].assign(done=ended[is_quiet])
    # The last moment of each rest, and not the first rest.
    rested = rested.groupby("done").last()
    return Quiet(
        process,
        rested["time"].to_numpy(),
        rested["rss_bytes"].to_numpy(),
        rested["managed_bytes"].to_numpy(),
        rested.index.to_numpy(),
    )
