"""Synthetic tissue: nuclei of several sizes and densities, with the truth they were drawn from.

Each region is made from its own place and the seed alone, so any part of a slide can be made
without the rest, and is the same whichever part it is made with.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.identity import identify_text

# Nuclei are set out on squares of so many pixels; each knows its neighbours only.
SQUARE = 256
# A square is drawn with so many pixels around it, for the blur.
MARGIN = 4
# Of the sum of their radii, how near nuclei come.
TOUCHING = 0.88
# So many are tried for each that there is room for.
CROWDED = 2.5


@dataclass(frozen=True)
class Tissue:
    """A slide of nuclei.

    Parameters
    ----------
    height, width
        In pixels.
    radius
        Of the smallest and largest nuclei, in pixels.
    density
        Share of the pixels that nuclei cover where they are dense; in between there are gaps.
    noise
        Standard deviation of the noise, in counts, where nuclei have 400 to 1000.
    seed
        Another seed, other tissue.

    Examples
    --------
    >>> tissue = Tissue(400, 600, seed=3)
    >>> tissue.image().lengths, tissue.truth().lengths
    ({'c': 2, 'y': 400, 'x': 600}, {'y': 400, 'x': 600})
    """

    height: int = 2000
    width: int = 2000
    radius: tuple[float, float] = (6.0, 14.0)
    density: float = 0.35
    noise: float = 40.0
    seed: int = 0

    def image(self) -> Source:
        """Return the image as a source: nuclei, and a marker in some of them."""
        lengths = {"c": 2, "y": self.height, "x": self.width}
        grain = {"c": 2, "y": SQUARE, "x": SQUARE}
        return Source("tissue", lengths, np.dtype("u2"), TissueReader(self, "image"), grain)

    def truth(self) -> Source:
        """Return the labels that the image was drawn from, as a source."""
        lengths = {"y": self.height, "x": self.width}
        return Source("truth", lengths, np.dtype("u4"), TissueReader(self, "truth"),
                      dict.fromkeys(lengths, SQUARE))  # fmt: skip

    def nuclei(self, row: int, column: int) -> np.ndarray:
        """Return the nuclei whose centre lies in a square.

        Returns
        -------
        numpy.ndarray
            For each: y, x, two radii, angle, brightness, marker, and its number.
        """
        return _settle(self, row, column)


@lru_cache(maxsize=4096)
def _settle(tissue: Tissue, row: int, column: int) -> np.ndarray:
    """Return the nuclei of a square that no stronger one nearby has pushed out.

    Whether a stronger one has been pushed out itself does not matter: so squares around this
    one are all that is needed.
    """
    squares = [
        _scatter(tissue, row + down, column + right)
        for down, right in product((0, -1, 1), repeat=2)
    ]
    tries = np.concatenate(squares)
    strength = tries[:, 8]
    is_kept = np.ones(len(tries), bool)
    pairs = cKDTree(tries[:, :2]).query_pairs(2 * tissue.radius[1], output_type="ndarray")
    one, other = pairs.T
    apart = np.hypot(*(tries[one, :2] - tries[other, :2]).T)
    # They may touch and dent each other, but not lie on top of each other.
    meets = apart < TOUCHING * (tries[one, 2] + tries[other, 2])
    weaker = np.where(strength[one] < strength[other], one, other)[meets]
    is_kept[weaker] = False
    own = len(squares[0])
    return np.asarray(tries[:own][is_kept[:own]][:, :8])


@lru_cache(maxsize=4096)
def _scatter(tissue: Tissue, row: int, column: int) -> np.ndarray:
    """Return what might become nuclei in a square: as :meth:`Tissue.nuclei`, and a strength."""
    # Neighbours of neighbours lie before the first square, and a seed takes no negative numbers.
    random = np.random.default_rng([tissue.seed, row + 2, column + 2])
    low, high = tissue.radius
    count = int(CROWDED * tissue.density * SQUARE**2 / (np.pi * ((low + high) / 2) ** 2))
    across = -(-tissue.width // SQUARE) + 4
    first = ((row + 2) * across + column + 2) * count + 1
    tries = random.random((count, 8))
    y, x = (row + tries[:, 0]) * SQUARE, (column + tries[:, 1]) * SQUARE
    size = low + (high - low) * tries[:, 2] ** 1.5
    found = np.column_stack(
        [
            y,
            x,
            size,
            size * (0.75 + 0.25 * tries[:, 3]),
            np.pi * tries[:, 4],
            400 + 600 * tries[:, 5],
            np.where(tries[:, 6] < 0.3, 800.0, 0.0),
            first + np.arange(count),
            tries[:, 7],
        ]
    )
    # Dense and sparse parts, as glands and stroma.
    crowd = 0.55 + 0.45 * np.sin(y / 170 + tissue.seed) * np.cos(x / 230)
    return np.asarray(found[np.random.default_rng([tissue.seed, count]).random(count) < crowd])


@dataclass(frozen=True)
class TissueReader(Reader):
    """Tissue that is made when it is read."""

    tissue: Tissue
    what: Literal["image", "truth"]

    def __call__(self, ranges: Ranges) -> np.ndarray:
        *channels, rows, columns = ranges
        labels, light = draw(self.tissue, rows, columns, is_truth=self.what == "truth")
        if self.what == "truth":
            return labels
        start, stop = channels[0]
        return light[start:stop]

    def identity(self) -> str | None:
        return identify_text(self.tissue, self.what)


def draw(
    tissue: Tissue, rows: tuple[int, int], columns: tuple[int, int], *, is_truth: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return truth and light of a part of the slide."""
    shape = rows[1] - rows[0], columns[1] - columns[0]
    labels = np.zeros(shape if is_truth else (0, 0), np.uint32)
    light = np.zeros((0, 0, 0) if is_truth else (2, *shape), np.uint16)
    for row in range(rows[0] // SQUARE, -(-rows[1] // SQUARE)):
        for column in range(columns[0] // SQUARE, -(-columns[1] // SQUARE)):
            corner = row * SQUARE, column * SQUARE
            here, there = _cut(corner, rows, columns)
            square_labels, square_light = _draw_square(tissue, row, column, is_truth)
            if is_truth:
                labels[there] = square_labels[here]
            else:
                light[(slice(None), *there)] = square_light[(slice(None), *here)]
    return labels, light


def _around(tissue: Tissue, row: int, column: int) -> np.ndarray:
    """Return the nuclei that reach into a square and its margin."""
    squares = [
        tissue.nuclei(row + down, column + right) for down, right in product((-1, 0, 1), repeat=2)
    ]
    found = np.concatenate(squares)
    reach = MARGIN + 1 + found[:, 2]
    middles = found[:, :2] - np.array([row, column]) * SQUARE
    is_near = [(middle > -reach) & (middle < SQUARE + reach) for middle in middles.T]
    return np.asarray(found[is_near[0] & is_near[1]])


def _draw_square(
    tissue: Tissue, row: int, column: int, is_truth: bool
) -> tuple[np.ndarray, np.ndarray]:
    side = SQUARE + 2 * MARGIN
    top, left = row * SQUARE - MARGIN, column * SQUARE - MARGIN
    labels = np.zeros((side, side), np.uint32)
    nearest = np.full((side, side), 1.0)
    light = np.full((2, side, side), 100.0)
    for y, x, long, wide, angle, bright, marker, number in _around(tissue, row, column):
        rows, columns = (
            slice(max(0, int(middle - long) - 1), min(side, int(middle + long) + 2))
            for middle in (y - top, x - left)
        )
        box = rows, columns
        grid_y, grid_x = np.ogrid[box]
        dy, dx = grid_y + top - y, grid_x + left - x
        along = np.cos(angle) * dy + np.sin(angle) * dx
        beside = np.cos(angle) * dx - np.sin(angle) * dy
        depth = (along / long) ** 2 + (beside / wide) ** 2
        mine = depth < nearest[box]
        nearest[box][mine] = depth[mine]
        labels[box][mine] = number
        for channel, strength in enumerate((bright, marker) if not is_truth else ()):
            light[channel][box][mine] = 100.0 + strength * (1.0 - 0.35 * depth[mine])
    inside = slice(MARGIN, MARGIN + SQUARE), slice(MARGIN, MARGIN + SQUARE)
    if is_truth:
        return labels[inside], light
    # As a lens blurs.
    light = gaussian_filter(light, (0, 0.8, 0.8))[(slice(None), *inside)]
    random = np.random.default_rng([tissue.seed, row, column, 1])
    light += random.normal(0, tissue.noise, light.shape)
    return labels, np.clip(light, 0, 65535).astype(np.uint16)


def _cut(
    corner: tuple[int, int], rows: tuple[int, int], columns: tuple[int, int]
) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return a square's part in a range, counted from its corner and from that of the range."""
    here, there = [], []
    for start, (low, high) in zip(corner, (rows, columns), strict=True):
        first, last = max(start, low), min(start + SQUARE, high)
        here.append(slice(first - start, last - start))
        there.append(slice(first - low, last - low))
    return (here[0], here[1]), (there[0], there[1])
