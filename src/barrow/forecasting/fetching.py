"""What tasks take from other workers: with one worker all of it is there, with more it is not."""

from dataclasses import replace

import numpy as np

from barrow.simulating.load import Load

FETCH_SECONDS = 0.002
"""To ask another worker for a small result; on one machine, where it was measured."""


def find_fetching(inputs: np.ndarray, workers: int) -> np.ndarray:
    """Return the chance that not all inputs of a task are on one worker, if they lie anywhere.

    A task goes where its inputs are: one that has a single one never has to ask for it.

    Examples
    --------
    >>> find_fetching(np.array([0, 1, 2, 3]), workers=2)
    array([0.  , 0.  , 0.5 , 0.75])
    """
    return np.asarray(1.0 - float(workers) ** -np.maximum(0.0, inputs - 1.0))


def move_inputs(load: Load, inputs: np.ndarray, before: int, workers: int) -> Load:
    """Return a load that was measured with so many workers before, as it is with others.

    Parameters
    ----------
    inputs
        Of each task: results of others that it takes. Empty if nobody knows.
    """
    if len(inputs) != len(load.cpu_seconds):
        return load
    more = find_fetching(inputs, workers) - find_fetching(inputs, before)
    return replace(load, wait_seconds=np.maximum(0.0, load.waits + FETCH_SECONDS * more))
