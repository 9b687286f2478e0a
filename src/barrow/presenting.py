"""Give a result as the user gave the source: an array, or a DataArray."""

from pathlib import Path
from typing import Any

import numpy as np

from barrow.model.applied import kept_dims
from barrow.model.plan import Plan
from barrow.model.run import Run
from barrow.model.source import Source
from barrow.running import stores


def open_stored(plan: Plan, store: Path) -> Any:
    """Return the Zarr array of a stored result."""
    assert plan.target is not None
    return stores.open_store(stores.array_path(store, stores.variable_of(plan.target)))


def open_values(run: Run) -> Any:
    """Return the result of a run without labels: a plain array."""
    if run.plan.result == "store":
        to = run.plan.options.get("to")
        return open_stored(run.plan, run.folder / "result.zarr" if to is None else Path(to))
    is_plain = run.plan.target is None or run.plan.target.labels is None
    return run.result if is_plain else run.result.values


def present(plan: Plan, values: Any) -> Any:
    """Return values with the labels of the source, if it had any."""
    assert plan.target is not None
    if plan.target.labels is None:
        return values
    if not isinstance(values, np.ndarray):
        import dask.array

        values = dask.array.from_array(values, chunks=values.chunks)
    return put_labels_of(plan.target, values)


def put_labels_of(target: Source, values: Any) -> Any:
    """Return values as a DataArray; None if the target has no labels."""
    if target.labels is None:
        return None
    from barrow.sources.labelled import put_labels

    return put_labels(values, target.lengths, kept_dims(target), target.labels)
