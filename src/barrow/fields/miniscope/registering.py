"""Cells of several sessions: which of them are the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.miniscope.moving import estimate_motion, make_template


def calculate_centroids(A: Any) -> np.ndarray:
    """Return the middle of each cell's light: unit × (height, width).

    Parameters
    ----------
    A
        Footprints: unit × height × width.
    """
    values = np.asarray(A, float)
    light = values.sum(axis=(1, 2))
    light = np.where(light > 0, light, 1)
    y = (values.sum(axis=2) @ np.arange(values.shape[1])) / light
    x = (values.sum(axis=1) @ np.arange(values.shape[2])) / light
    return np.column_stack([y, x])


def estimate_displacement(images: Sequence[Any], max_sh: int = 40) -> np.ndarray:
    """Return how to move each session onto the first: session × (height, width).

    Parameters
    ----------
    images
        One image of each session, for example its maximum projection.
    """
    shapes = {np.shape(image) for image in images}
    if len(shapes) != 1:
        raise InputError(f"Sessions have images of different sizes: {sorted(shapes)}.")
    stack = np.stack([np.asarray(image, np.float32) for image in images])
    return estimate_motion(stack, make_template(stack[:1], max_sh))


def cross_register(results: Sequence[Any], *, param_dist: float = 5.0, max_sh: int = 40) -> Any:
    """Return a table of cells: a row for each, a column for each session.

    Sessions are moved onto the first by their maximum projections. Cells whose centroids are
    each other's nearest, and closer than ``param_dist`` pixels, are the same; one that several
    sessions share must be so for every pair of them.

    Parameters
    ----------
    results
        What :func:`run` returned for each session.

    Returns
    -------
    pandas.DataFrame
        Numbers of units; -1 where a session does not have the cell.
    """
    import pandas as pd

    moves = estimate_displacement([np.asarray(r.max_proj) for r in results], max_sh)
    centres = [calculate_centroids(r.A) + move for r, move in zip(results, moves, strict=True)]
    count = len(centres)
    rows: list[dict[int, int]] = [{0: unit} for unit in range(len(centres[0]))]
    for session in range(1, count):
        taken = set()
        for row in rows:
            unit = _partner(row, session, centres, param_dist)
            if unit is not None and unit not in taken:
                row[session] = unit
                taken.add(unit)
        rows += [{session: unit} for unit in range(len(centres[session])) if unit not in taken]
    table = [[row.get(session, -1) for session in range(count)] for row in rows]
    return pd.DataFrame(table, columns=[f"session_{n}" for n in range(count)])


def _partner(
    row: dict[int, int], session: int, centres: list[np.ndarray], most: float
) -> int | None:
    """Return the cell of a session that is nearest to a row's cells, and they to it."""
    there = centres[session]
    if not len(there):
        return None
    found = set()
    for other, unit in row.items():
        away = np.hypot(*(there - centres[other][unit]).T)
        nearest = int(away.argmin())
        back = np.hypot(*(centres[other] - there[nearest]).T)
        if away[nearest] > most or int(back.argmin()) != unit:
            return None
        found.add(nearest)
    return found.pop() if len(found) == 1 else None
