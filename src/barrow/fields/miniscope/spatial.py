"""Spatial update: a non-negative lasso for each pixel over the units near it.

A pixel's values are not needed, only what they have in common with the traces. That is
summed in one pass over the movie; the regressions then run on small matrices.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from barrow.errors import InputError
from barrow.fields.miniscope.compiling import compiled
from barrow.fields.miniscope.footprints import Footprints, build
from barrow.fields.miniscope.segments import Summary

_SWEEPS = 200
_ENOUGH = 1e-6
_SIGNIFICANT = 3.0
"""Standard errors by which a pixel's share in a unit must differ from none."""


@dataclass(frozen=True)
class Reach:
    """Which pixels each unit may have, sorted by pixel."""

    starts: np.ndarray
    """Where the units of each pixel begin in ``units``; one more than there are pixels."""
    units: np.ndarray


def find_reach(A: Footprints, shape: tuple[int, int], dl_wnd: int = 10) -> Reach:
    """Return the pixels within so many of each footprint."""
    import cv2

    y, x = np.mgrid[-dl_wnd : dl_wnd + 1, -dl_wnd : dl_wnd + 1]
    disk = (x**2 + y**2 <= dl_wnd**2).astype(np.uint8)
    rows, cols = [], []
    for unit in range(A.shape[1]):
        mask = np.zeros(shape, np.uint8)
        mask.reshape(-1)[A.indices[A.indptr[unit] : A.indptr[unit + 1]]] = 1
        pixels = np.flatnonzero(cv2.dilate(mask, disk))
        rows.append(pixels)
        cols.append(np.full(len(pixels), unit))
    pixels = np.concatenate(rows) if rows else np.zeros(0, int)
    units = np.concatenate(cols) if cols else np.zeros(0, int)
    order = np.argsort(pixels, kind="stable")
    starts = np.searchsorted(pixels[order], np.arange(shape[0] * shape[1] + 1))
    return Reach(starts.astype(np.int64), units[order].astype(np.int64))


@dataclass
class Shared:
    """What pixels have in common with the traces of units, and with the background."""

    units: np.ndarray
    """One number for each entry of a :class:`Reach`."""
    background: np.ndarray

    def __add__(self, other: "Shared") -> "Shared":
        return Shared(self.units + other.units, self.background + other.background)


def sum_shared(
    movie: np.ndarray, traces: np.ndarray, *, starts: np.ndarray, units: np.ndarray
) -> Shared:
    """Return sums over the frames of a chunk.

    Parameters
    ----------
    traces
        Of all units, and last of the background: frame × unit.
    """
    flat = np.ascontiguousarray(movie).reshape(len(movie), -1)
    found = Shared(np.zeros(len(units)), np.zeros(flat.shape[1]))
    values = np.ascontiguousarray(traces, np.float64)
    _add_shared(flat, values, starts, units, found.units, found.background)
    return found


def update_spatial(
    shared: Shared,
    reach: Reach,
    C: np.ndarray,
    f: np.ndarray,
    summary: Summary,
    *,
    sparse_penal: float = 0.01,
    size_thres: tuple[int | None, int | None] = (25, None),
) -> tuple[Footprints, np.ndarray]:
    """Return new footprints, and which of the units still have one.

    Parameters
    ----------
    sparse_penal
        How strong a pixel's share in a unit must be, in units of its noise.
    size_thres
        Least and largest number of pixels of a unit.
    """
    if sparse_penal < 0:
        raise InputError(f"sparse_penal={sparse_penal!r}: use 0 or more.")
    frames, shape = summary.frames, summary.total.shape
    rows = np.vstack([C, f]).astype(float)
    mean = rows.mean(axis=1)
    gram = (rows - mean[:, None]) @ (rows - mean[:, None]).T / frames
    spread = np.sqrt(np.diag(gram))
    pixel_mean = summary.mean.ravel()
    pixel = np.repeat(np.arange(len(reach.starts) - 1), np.diff(reach.starts))
    with_units = shared.units / frames - pixel_mean[pixel] * mean[reach.units]
    with_f = shared.background / frames - pixel_mean * mean[-1]
    noise = summary.noise.ravel()[pixel]
    penalty = sparse_penal * noise * spread[reach.units]
    values = np.zeros(len(reach.units))
    _solve(gram, with_units, with_f, penalty, reach.starts, reach.units, values)
    # A share that noise alone could have made is none: a dim unit would be wide with them.
    least = _SIGNIFICANT * noise / np.maximum(spread[reach.units] * np.sqrt(frames), 1e-12)
    kept = values > least
    A = build([pixel[kept]], [reach.units[kept]], [values[kept]], len(pixel_mean), len(C))
    return _keep_blobs(A, (shape[0], shape[1]), size_thres)


def _keep_blobs(
    A: Footprints, shape: tuple[int, int], size_thres: tuple[int | None, int | None]
) -> tuple[Footprints, np.ndarray]:
    """Return each unit's largest piece, and which units are neither too small nor too large."""
    from scipy.ndimage import label

    least, most = size_thres[0] or 1, size_thres[1] or shape[0] * shape[1]
    rows, cols, values = [], [], []
    kept = np.zeros(A.shape[1], bool)
    for unit in range(A.shape[1]):
        part = slice(A.indptr[unit], A.indptr[unit + 1])
        pixels, weights = A.indices[part], A.data[part]
        if not len(pixels):
            continue
        y, x = np.divmod(pixels, shape[1])
        image = np.zeros((np.ptp(y) + 1, np.ptp(x) + 1), bool)
        image[y - y.min(), x - x.min()] = True
        groups, _ = label(image, np.ones((3, 3)))
        own = groups[y - y.min(), x - x.min()]
        light = np.bincount(own, weights)
        inside = own == light.argmax()
        if least <= inside.sum() <= most:
            kept[unit] = True
            rows.append(pixels[inside])
            cols.append(np.full(int(inside.sum()), kept.sum() - 1))
            values.append(weights[inside])
    return build(rows, cols, values, A.shape[0], int(kept.sum())), kept


def residual_mean(A: Footprints, C: np.ndarray, summary: Summary) -> np.ndarray:
    """Return the mean of each pixel that no unit explains."""
    explained = A @ C.mean(axis=1) if A.shape[1] else 0
    return np.asarray(np.maximum(summary.mean.ravel() - explained, 0))


def overlaps(A: Footprints, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what footprints have in common with each other, and with an image."""
    return sparse.csc_array(A.T @ A).toarray(), np.asarray(A.T @ b)


@compiled
def _add_shared(flat: Any, traces: Any, starts: Any, units: Any, out: Any, background: Any) -> None:
    last = traces.shape[1] - 1
    for frame in range(flat.shape[0]):
        for pixel in range(flat.shape[1]):
            value = float(flat[frame, pixel])
            if value == 0.0:
                continue
            background[pixel] += value * traces[frame, last]
            for at in range(starts[pixel], starts[pixel + 1]):
                out[at] += value * traces[frame, units[at]]


@compiled
def _solve(
    gram: Any, with_units: Any, with_f: Any, penalty: Any, starts: Any, units: Any, values: Any
) -> None:
    last = gram.shape[0] - 1
    for pixel in range(starts.size - 1):
        low, high = starts[pixel], starts[pixel + 1]
        if low == high:
            continue
        f = 0.0
        for _ in range(_SWEEPS):
            moved = 0.0
            if gram[last, last] > 0:
                rest = with_f[pixel]
                for at in range(low, high):
                    rest -= values[at] * gram[last, units[at]]
                f = max(0.0, rest / gram[last, last])
            for at in range(low, high):
                unit = units[at]
                if gram[unit, unit] <= 0:
                    continue
                rest = with_units[at] - penalty[at] - f * gram[last, unit]
                for other in range(low, high):
                    if other != at:
                        rest -= values[other] * gram[units[other], unit]
                new = max(0.0, rest / gram[unit, unit])
                moved = max(moved, abs(new - values[at]))
                values[at] = new
            if moved < _ENOUGH:
                break
