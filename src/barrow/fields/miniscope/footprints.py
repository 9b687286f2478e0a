"""Footprints of units: where each is, as a sparse matrix of pixel × unit."""

from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from barrow.fields.miniscope.compiling import compiled
from barrow.fields.miniscope.filtering import low_pass
from barrow.fields.miniscope.seeding import multiply_pairs, normalise
from barrow.fields.miniscope.segments import Summary, split_segments, transform

Footprints: TypeAlias = Any
"""A ``scipy.sparse.csc_array`` of pixel × unit; SciPy has no types."""


def sum_products(
    movie: np.ndarray, numbers: np.ndarray, *, seeds: np.ndarray, wnd: int, noise_freq: float
) -> np.ndarray:
    """Return what seeds have in common with the pixels around them: seed × side × side.

    It is the product of their slow parts, summed over the frames of a chunk.
    """
    side = 2 * wnd + 1
    out = np.zeros((len(seeds), side, side))
    for part in split_segments(numbers):
        slow = transform(movie[part], noise_freq).reshape(-1, *movie.shape[1:])
        _add_products(slow, seeds, wnd, out)
    return out


def initA(  # noqa: N802 - its name in MiniAn
    products: np.ndarray, summary: Summary, seeds: np.ndarray, *, thres_corr: float = 0.8
) -> Footprints:
    """Return first footprints: the correlation of each pixel with its seed, where it is high.

    Parameters
    ----------
    products
        Of :func:`sum_products`.
    """
    from scipy.ndimage import label

    height, width = summary.total.shape
    wnd = products.shape[1] // 2
    rows, cols, values = [], [], []
    for unit, (row, col) in enumerate(seeds):
        window, inner = _window(row, col, wnd, height, width)
        shared = products[unit][inner] - (
            summary.total[window] * summary.total[row, col] / summary.frames
        )
        size = np.sqrt(summary.variance[window] * summary.variance[row, col])
        alike = np.where(size > 0, shared / np.where(size > 0, size, 1), 0)
        groups, _ = label(alike >= thres_corr)
        own = groups[row - window[0].start, col - window[1].start]
        inside = np.nonzero((groups == own) & (own > 0))
        pixels = (inside[0] + window[0].start) * width + inside[1] + window[1].start
        rows.append(pixels)
        cols.append(np.full(len(pixels), unit))
        values.append(alike[inside])
    return build(rows, cols, values, height * width, len(seeds))


def unit_merge(
    A: Footprints, C: np.ndarray, *, thres_corr: float = 0.8, noise_freq: float | None = None
) -> tuple[Footprints, np.ndarray]:
    """Return footprints and traces with units joined that overlap and go together."""
    from scipy.sparse.csgraph import connected_components

    count = A.shape[1]
    if not count:
        return A, C
    slow = normalise(C if noise_freq is None else low_pass(C, noise_freq))
    shared = sparse.coo_array(A.T @ A)
    close = shared.row < shared.col
    first, second = shared.row[close], shared.col[close]
    together = multiply_pairs(slow, first, second) > thres_corr
    graph = sparse.coo_array(
        (np.ones(int(together.sum())), (first[together], second[together])), (count, count)
    )
    groups, group = connected_components(graph, directed=False)
    if groups == count:
        return A, C
    join = sparse.csc_array((np.ones(count), (np.arange(count), group)), (count, groups))
    sizes = np.asarray(join.sum(axis=0)).ravel()
    return sparse.csc_array(A @ join / sizes), np.asarray((join.T @ C) / sizes[:, None])


def project(
    movie: np.ndarray, *, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """Return the light of each unit, and last that of an image, in each frame: frame × unit."""
    flat = np.ascontiguousarray(movie).reshape(len(movie), -1)
    out = np.empty((len(movie), len(indptr)), np.float32)
    _add_light(flat, indptr, indices, data, b, out)
    return out


def dense(A: Footprints, shape: tuple[int, int]) -> np.ndarray:
    """Return footprints as unit × height × width."""
    return np.asarray(A.T.toarray()).reshape(A.shape[1], *shape)


def build(rows: Any, cols: Any, values: Any, pixels: int, units: int) -> Footprints:
    """Return lists of arrays as one sparse matrix."""
    join = [np.concatenate(part) if len(part) else np.zeros(0) for part in (values, rows, cols)]
    places = join[1].astype(np.int64), join[2].astype(np.int64)
    return sparse.csc_array((join[0].astype(np.float32), places), (pixels, units))


def scale_to_peak(A: Footprints) -> tuple[Footprints, np.ndarray]:
    """Return footprints whose brightest pixel is 1, and what each was divided by."""
    peak = A.max(axis=0).toarray().ravel() if A.nnz else np.ones(A.shape[1])
    peak = np.where(peak > 0, peak, 1)
    return sparse.csc_array(A @ sparse.diags_array(1 / peak)), peak


def _window(row: int, col: int, wnd: int, height: int, width: int) -> tuple[Any, Any]:
    top, left = max(0, row - wnd), max(0, col - wnd)
    bottom, right = min(height, row + wnd + 1), min(width, col + wnd + 1)
    inner = (
        slice(top - row + wnd, bottom - row + wnd),
        slice(left - col + wnd, right - col + wnd),
    )
    return (slice(top, bottom), slice(left, right)), inner


@compiled
def _add_products(slow: Any, seeds: Any, wnd: int, out: Any) -> None:
    waves, height, width = slow.shape
    for unit in range(seeds.shape[0]):
        row, col = seeds[unit, 0], seeds[unit, 1]
        top, left = max(0, row - wnd), max(0, col - wnd)
        bottom, right = min(height, row + wnd + 1), min(width, col + wnd + 1)
        for wave in range(waves):
            here = slow[wave, row, col]
            for y in range(top, bottom):
                for x in range(left, right):
                    out[unit, y - row + wnd, x - col + wnd] += here * slow[wave, y, x]


@compiled
def _add_light(flat: Any, indptr: Any, indices: Any, data: Any, b: Any, out: Any) -> None:
    units = indptr.size - 1
    for frame in range(flat.shape[0]):
        for unit in range(units):
            light = 0.0
            for at in range(indptr[unit], indptr[unit + 1]):
                light += data[at] * flat[frame, indices[at]]
            out[frame, unit] = light
        light = 0.0
        for pixel in range(b.size):
            light += b[pixel] * flat[frame, pixel]
        out[frame, units] = light


def pack(A: Footprints, **more: np.ndarray) -> dict[str, np.ndarray]:
    """Return footprints and other arrays as plain arrays."""
    parts = {"A_data": A.data, "A_indices": A.indices, "A_indptr": A.indptr}
    return {**parts, **{name: np.asarray(value) for name, value in more.items()}}


def unpack(found: dict[str, np.ndarray], shape: tuple[int, int]) -> tuple[Footprints, np.ndarray]:
    """Return footprints and traces of plain arrays; ``shape`` is height and width."""
    parts = found["A_data"], found["A_indices"], found["A_indptr"]
    return sparse.csc_array(parts, (shape[0] * shape[1], len(parts[2]) - 1)), found["C"]
