"""Labels as runs: neighbouring pixels of one object in a row.

Objects are many pixels wide, so work on runs instead of pixels is several times quicker and
needs little memory. Plain arrays: no chunks, no files.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Runs:
    """The runs of an array of labels, in raster order, background left out."""

    label: np.ndarray
    start: np.ndarray
    """First pixel of each run, counted in raster order."""
    length: np.ndarray
    shape: tuple[int, ...]

    @property
    def stop(self) -> np.ndarray:
        """The pixel behind each run."""
        return np.asarray(self.start + self.length)


def find_runs(labels: np.ndarray) -> Runs:
    """Return the runs of labels; none goes over the end of a row.

    Examples
    --------
    >>> runs = find_runs(np.array([[0, 7, 7], [7, 0, 2]]))
    >>> runs.label.tolist(), runs.start.tolist(), runs.length.tolist()
    ([7, 7, 2], [1, 3, 5], [2, 1, 1])
    """
    flat = np.ascontiguousarray(labels).reshape(-1)
    if not flat.size:
        nothing = np.zeros(0, np.int64)
        return Runs(flat[:0], nothing, nothing, labels.shape)
    is_new = np.empty(flat.size, bool)
    is_new[0] = True
    np.not_equal(flat[1:], flat[:-1], out=is_new[1:])
    is_new[:: labels.shape[-1]] = True
    start = np.flatnonzero(is_new)
    length = np.diff(start, append=flat.size)
    label = flat[start]
    inside = label != 0
    return Runs(label[inside], start[inside], length[inside], labels.shape)


def paint(runs: Runs, label: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return an array of labels from runs, each with the label that is given for it.

    Examples
    --------
    >>> runs = find_runs(np.array([[0, 7, 7], [7, 0, 2]]))
    >>> paint(runs, np.array([1, 1, 3]), np.dtype("u1")).tolist()
    [[0, 1, 1], [1, 0, 3]]
    """
    size = int(np.prod(runs.shape))
    # Gaps and runs take turns: one repeat paints both.
    value = np.zeros(2 * len(label) + 1, dtype)
    value[1::2] = label
    count = np.empty(2 * len(label) + 1, np.int64)
    count[1::2] = runs.length
    ends = np.concatenate([[0], runs.stop])
    count[0::2] = np.append(runs.start, size) - ends
    return np.repeat(value, count).reshape(runs.shape)


def group(label: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the different labels in order of their first run, the place of each run, and that run.

    Examples
    --------
    >>> [found.tolist() for found in group(np.array([7, 7, 2, 7, 9]))]
    [[7, 2, 9], [0, 0, 1, 0, 2], [0, 2, 4]]
    """
    import pandas

    place, names = pandas.factorize(label)
    highest = np.maximum.accumulate(place) if len(place) else place
    first = np.flatnonzero(np.diff(highest, prepend=-1))
    return np.asarray(names), place, first
