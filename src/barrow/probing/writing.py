"""Measure how fast answers of a step can be stored, compression included."""

import tempfile
import time

import numpy as np

from barrow.model.applied import evaluate
from barrow.model.source import Source
from barrow.shared import Ranges


def measure_writing(target: Source, block: Ranges) -> float:
    """Return the seconds that each byte of an answer takes to be stored."""
    import zarr

    answer = evaluate(target, block)
    if not isinstance(answer, np.ndarray) or not answer.nbytes or answer.dtype.hasobject:
        return 0.0
    with tempfile.TemporaryDirectory(prefix="barrow-") as folder:
        try:
            array = zarr.create_array(
                f"{folder}/probe.zarr",
                shape=answer.shape,
                dtype=answer.dtype,
                chunks=tuple(max(1, n) for n in answer.shape),
            )
        except (TypeError, ValueError):
            return 0.0  # it will be said when the store is made
        seconds = []
        for _ in range(2):  # the first time, libraries are loaded
            start = time.perf_counter()
            array[...] = answer
            seconds.append(time.perf_counter() - start)
        return min(seconds) / answer.nbytes
