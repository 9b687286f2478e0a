"""Synthetic tissue: nuclei of several sizes and densities, with the truth they were drawn from.

Each region is made from its own place and the seed alone, so any part of a slide can be made
without the rest, and is the same whichever part it is made with.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.identity import identify_text

# Nuclei are set out on squares of so many pixels; each knows its own only.
SQUARE = 256
CHANNELS = ("dapi", "marker")


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
            For each: y, x, two radii, angle, brightness, marker; and its number.
        """
        random = np.random.default_rng([self.seed, row, column])
        # Dense and sparse parts, as glands and stroma, wider than a square.
        crowd = 0.55 + 0.45 * np.sin(0.7 * row + 0.3 * self.seed) * np.cos(0.9 * column)
        low, high = self.radius
        mean_area = np.pi * ((low + high) / 2) ** 2
        wanted = int(self.density * crowd * SQUARE**2 / mean_area)
        tries = random.random((4 * wanted + 4, 7))
        size = low + (high - low) * tries[:, 2] ** 1.5
        # Kept away from the rim of the square: nuclei of two squares never meet.
        rim = high + 1
        y, x = rim + tries[:, :2].T * (SQUARE - 2 * rim)
        kept: list[int] = []
        for number in range(len(tries)):
            if len(kept) == wanted:
                break
            others = np.array(kept, int)
            apart = np.hypot(y[others] - y[number], x[others] - x[number])
            # They may touch and dent each other, but not lie on top of each other.
            if (apart > 0.95 * (size[others] + size[number])).all():
                kept.append(number)
        at = np.array(kept, int)
        flat = 0.75 + 0.25 * tries[at, 3]
        return np.column_stack(
            [
                y[at] + row * SQUARE,
                x[at] + column * SQUARE,
                size[at],
                size[at] * flat,
                np.pi * tries[at, 4],
                400 + 600 * tries[at, 5],
                np.where(tries[at, 6] < 0.3, 800.0, 0.0),
            ]
        )


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


def _draw_square(
    tissue: Tissue, row: int, column: int, is_truth: bool
) -> tuple[np.ndarray, np.ndarray]:
    shape = (SQUARE, SQUARE)
    nuclei = tissue.nuclei(row, column)
    labels = np.zeros(shape, np.uint32)
    nearest = np.full(shape, 1.0)
    light = np.full((2, *shape), 100.0)
    across = -(-tissue.width // SQUARE)
    first = (row * across + column) * SQUARE  # more than a square ever has
    for number, (y, x, long, wide, angle, bright, marker) in enumerate(nuclei):
        top, left = int(y - long) - row * SQUARE - 1, int(x - long) - column * SQUARE - 1
        box = (
            slice(max(0, top), top + 2 * int(long) + 4),
            slice(max(0, left), left + 2 * int(long) + 4),
        )
        grid_y, grid_x = np.ogrid[box]
        dy, dx = grid_y + row * SQUARE - y, grid_x + column * SQUARE - x
        along = np.cos(angle) * dy + np.sin(angle) * dx
        beside = np.cos(angle) * dx - np.sin(angle) * dy
        depth = (along / long) ** 2 + (beside / wide) ** 2
        mine = depth < nearest[box]
        nearest[box][mine] = depth[mine]
        labels[box][mine] = first + number + 1
        if not is_truth:
            shape_of_light = 1.0 - 0.35 * depth
            for channel, strength in enumerate((bright, marker)):
                light[channel][box][mine] = 100.0 + strength * shape_of_light[mine]
    if is_truth:
        return labels, light
    from scipy.ndimage import gaussian_filter

    # As a lens blurs: a square at a time, so it does not depend on what else is drawn.
    light = gaussian_filter(light, (0, 0.8, 0.8))
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
