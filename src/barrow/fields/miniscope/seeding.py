"""Seeds: pixels where a cell may be, and which of them to trust."""

from typing import Any

import numpy as np

from barrow.fields.miniscope.compiling import compiled
from barrow.fields.miniscope.filtering import high_pass, low_pass, rows_at_once


def seeds_init(
    projections: np.ndarray, *, max_wnd: int = 15, diff_thres: float = 3, smooth: float = 1.0
) -> np.ndarray:
    """Return pixels that are brighter than all around them in any projection: seed × 2.

    Parameters
    ----------
    projections
        The largest values of each pixel over windows of frames: window × height × width.
    max_wnd
        Radius in pixels up to which a seed is compared with its surroundings.
    diff_thres
        How much brighter than the darkest pixel there it must be.
    smooth
        Standard deviation in pixels of the blur that keeps single pixels from being seeds.
    """
    import cv2

    found = np.zeros(projections.shape[1:], bool)
    for image in projections:
        values = cv2.GaussianBlur(image.astype(np.float32), (0, 0), smooth)
        rows, cols = np.nonzero(values >= cv2.dilate(values, np.ones((3, 3), np.uint8)))
        kept = _stand_out(values, rows, cols, max_wnd, float(diff_thres))
        found[rows[kept], cols[kept]] = True
    return _thin(found)


def pnr_refine(
    traces: np.ndarray, *, noise_freq: float = 0.06, thres: float | str = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return which seeds to keep, and the peak-to-noise ratio of all.

    Parameters
    ----------
    traces
        Of the seeds: seed × frame.
    thres
        The least ratio; ``"auto"`` finds it where two kinds of seeds part best.
    """
    if not len(traces):
        return np.zeros(0, bool), np.zeros(0)
    noise = np.ptp(high_pass(traces, noise_freq), axis=1)
    pnr = np.ptp(traces.astype(np.float32), axis=1) / np.maximum(noise, 1e-9)
    limit = _part(pnr) if thres == "auto" else float(thres)
    return pnr > limit, pnr


def ks_refine(traces: np.ndarray, *, sig: float = 0.05) -> np.ndarray:
    """Return which seeds do not look like noise, by the test of Kolmogorov and Smirnov."""
    from scipy.stats import kstest

    kept = np.zeros(len(traces), bool)
    for number, trace in enumerate(traces):
        values = trace.astype(float)
        spread = values.std()
        if spread > 0:
            kept[number] = kstest((values - values.mean()) / spread, "norm").pvalue < sig
    return kept


def seeds_merge(
    seeds: np.ndarray,
    traces: np.ndarray,
    max_proj: np.ndarray,
    *,
    thres_dist: float = 10,
    thres_corr: float = 0.8,
    noise_freq: float = 0.06,
) -> np.ndarray:
    """Return which seeds to keep: the brightest of those that lie close and go together."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    count = len(seeds)
    if not count:
        return np.zeros(0, bool)
    pairs = cKDTree(seeds).query_pairs(thres_dist, output_type="ndarray")
    slow = normalise(low_pass(traces, noise_freq))
    pairs = pairs[multiply_pairs(slow, pairs[:, 0], pairs[:, 1]) > thres_corr]
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (count, count))
    _, group = connected_components(graph, directed=False)
    bright = max_proj[seeds[:, 0], seeds[:, 1]]
    kept = np.zeros(count, bool)
    order = np.lexsort((-bright, group))
    kept[order[np.unique(group[order], return_index=True)[1]]] = True
    return kept


def normalise(traces: np.ndarray) -> np.ndarray:
    """Return traces with mean 0 and length 1; constant ones stay 0."""
    found = np.array(traces, np.result_type(traces, np.float32))
    for rows in rows_at_once(*found.shape):
        found[rows] -= found[rows].mean(axis=1, keepdims=True)
        length = np.linalg.norm(found[rows], axis=1, keepdims=True)
        found[rows] /= np.where(length > 0, length, 1)
    return found


def multiply_pairs(traces: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the scalar products of pairs of traces, a few pairs at a time.

    Examples
    --------
    >>> multiply_pairs(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1]), np.array([1, 1]))
    array([11., 25.])
    """
    found = np.empty(len(first), traces.dtype)
    for part in rows_at_once(len(first), traces.shape[1]):
        found[part] = np.einsum("pt,pt->p", traces[first[part]], traces[second[part]])
    return found


def _part(values: np.ndarray) -> float:
    """Return the threshold between two groups that differ most (Otsu's method)."""
    ordered = np.sort(values)
    count = np.arange(1, len(ordered))
    if not len(count):
        return -np.inf
    total = np.cumsum(ordered)
    low = total[:-1] / count
    high = (total[-1] - total[:-1]) / (len(ordered) - count)
    best = int(np.argmax(count * (len(ordered) - count) * (high - low) ** 2))
    return float((ordered[best] + ordered[best + 1]) / 2)


def _thin(found: np.ndarray) -> np.ndarray:
    """Return one pixel for each group of pixels that touch."""
    from scipy.ndimage import center_of_mass, label

    groups, count = label(found, np.ones((3, 3)))
    if not count:
        return np.zeros((0, 2), int)
    centres = center_of_mass(found, groups, np.arange(1, count + 1))
    return np.asarray(np.rint(np.array(centres)), int).reshape(-1, 2)


@compiled
def _stand_out(values: Any, rows: Any, cols: Any, max_wnd: int, least: float) -> Any:
    """Return which local maxima stay so in some disk in which they stand out enough."""
    height, width = values.shape
    kept = np.zeros(rows.size, np.bool_)
    for number in range(rows.size):
        row, col = rows[number], cols[number]
        here = values[row, col]
        darkest = here
        for radius in range(1, max_wnd + 1):
            is_top = True
            for y in range(max(0, row - radius), min(height, row + radius + 1)):
                for x in range(max(0, col - radius), min(width, col + radius + 1)):
                    distance = (y - row) ** 2 + (x - col) ** 2
                    if distance > radius**2 or distance <= (radius - 1) ** 2:
                        continue
                    value = values[y, x]
                    if value > here:
                        is_top = False
                    darkest = min(darkest, value)
            if not is_top:
                break
            if radius > 1 and here - darkest >= least:
                kept[number] = True
                break
    return kept
