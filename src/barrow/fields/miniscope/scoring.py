"""Compare cells that were found with cells that are known."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

ENERGY = 0.9
"""A footprint's mask is the fewest of its brightest pixels that hold this part of its light."""


@dataclass(frozen=True)
class Score:
    """How well a movie was understood; 1 is perfect, except for the motion."""

    recall: float
    precision: float
    iou: float
    """Of the masks of pairs, on average."""
    trace: float
    """Correlation of the traces of pairs, on average."""
    activity: float
    """Correlation of the deconvolved activity with the spikes, on average."""
    motion_rmse: float
    """Pixels; a constant offset is not an error."""
    units: int

    def to_dict(self) -> dict[str, float]:
        """Return the numbers by their names."""
        return asdict(self)


def score(
    found: Mapping[str, Any], truth: Any, *, least_iou: float = 0.5, known: Any = None
) -> Score:
    """Return how well the results fit the truth.

    Parameters
    ----------
    found
        ``A`` (unit × height × width), ``C`` and ``S`` (unit × frame), ``motion``
        (frame × 2): the shifts that put each frame back in place.
    truth
        An object with ``A``, ``C``, ``S`` and ``motion``: where the tissue was.
    least_iou
        Overlap from which a cell counts as found.
    known
        Which of the true cells can be seen at all; all of them by default.
    """
    moved = np.asarray(found["motion"], float) + np.asarray(truth.motion, float)
    offset = moved.mean(axis=0)
    rmse = float(np.sqrt(((moved - offset) ** 2).mean()))
    true = np.asarray(truth.A, float)
    keep = np.ones(len(true), bool) if known is None else np.asarray(known, bool)
    shifted = _shift(np.asarray(found["A"], float), -np.rint(offset).astype(int))
    overlap = overlap_masks(_masks(shifted), _masks(true))
    pairs = match(overlap)
    hits = [(i, j) for i, j in pairs if overlap[i, j] >= least_iou]
    seen = [(i, j) for i, j in hits if keep[j]]
    return Score(
        recall=len(seen) / max(1, int(keep.sum())),
        precision=len(hits) / max(1, len(overlap)),
        iou=_mean([overlap[i, j] for i, j in pairs]),
        trace=_mean([correlate(found["C"][i], truth.C[j]) for i, j in pairs]),
        activity=_mean([correlate(found["S"][i], truth.S[j]) for i, j in pairs]),
        motion_rmse=rmse,
        units=len(overlap),
    )


def match(overlap: np.ndarray) -> list[tuple[int, int]]:
    """Return pairs (found, true) with the largest sum of overlaps, none of them empty."""
    from scipy.optimize import linear_sum_assignment

    rows, cols = linear_sum_assignment(-overlap)
    return [(int(i), int(j)) for i, j in zip(rows, cols, strict=True) if overlap[i, j] > 0]


def overlap_masks(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return intersection over union of all masks with all others."""
    first = one.reshape(len(one), -1).astype(np.float32)
    second = other.reshape(len(other), -1).astype(np.float32)
    both = first @ second.T
    either = first.sum(axis=1)[:, None] + second.sum(axis=1) - both
    return np.asarray(both / np.maximum(either, 1))


def correlate(one: Any, other: Any) -> float:
    """Return Pearson's correlation; NaN for a trace that never changes."""
    a, b = np.asarray(one, float), np.asarray(other, float)
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size > 0 else float("nan")


def _masks(footprints: np.ndarray) -> np.ndarray:
    flat = np.clip(footprints.reshape(len(footprints), -1), 0, None)
    order = np.argsort(-flat, axis=1, kind="stable")
    light = np.cumsum(np.take_along_axis(flat, order, axis=1), axis=1)
    total = light[:, -1:] if light.size else light
    # The pixel that reaches the share belongs to the mask.
    kept = np.concatenate([np.ones_like(total), light[:, :-1]], axis=1) if light.size else light
    kept[:, :1] = 0
    masks = np.zeros(flat.shape, bool)
    np.put_along_axis(masks, order, kept < ENERGY * total, axis=1)
    return np.asarray(masks & (flat > 0)).reshape(footprints.shape)


def _shift(stack: np.ndarray, by: np.ndarray) -> np.ndarray:
    out = np.zeros_like(stack)
    (dy, dx), (h, w) = by, stack.shape[1:]
    if abs(dy) < h and abs(dx) < w:
        out[:, max(0, dy) : h + min(0, dy), max(0, dx) : w + min(0, dx)] = stack[
            :, max(0, -dy) : h + min(0, -dy), max(0, -dx) : w + min(0, -dx)
        ]
    return out


def _mean(values: list[float]) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0
