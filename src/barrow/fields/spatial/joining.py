"""Join objects that borders of tiles have cut.

Neighbouring tiles see the same pixels around their border. Two labels there that cover each
other are one object. Only labels at borders are ever held; pixels are read strip by strip.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from barrow.fields.spatial.tiles import Border, Tiling
from barrow.model.source import Source

# Two labels are one object if they share this much of the smaller one, near the border.
SHARE = 0.5


class Unions:
    """Sets of numbers that turned out to be the same; each is known by its smallest.

    Examples
    --------
    >>> unions = Unions()
    >>> unions.join(5, 3)
    >>> unions.join(9, 5)
    >>> unions.root(9), unions.root(4)
    (3, 4)
    """

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def join(self, one: int, other: int) -> None:
        """Note that two numbers mean the same."""
        one, other = self.root(one), self.root(other)
        if one != other:
            self._parent[max(one, other)] = min(one, other)

    def root(self, number: int) -> int:
        """Return the smallest number that means the same."""
        parent = self._parent
        while (above := parent.get(number, number)) != number:
            parent[number] = parent.get(above, above)
            number = above
        return number

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all numbers that are known by another one, sorted, and that one."""
        names = sorted(self._parent)
        return np.array(names, np.uint64), np.array([self.root(n) for n in names], np.uint64)


def join_borders(views: Source, tiling: Tiling) -> Unions:
    """Return which labels of views side by side are the same object."""
    unions = Unions()
    for dim, axis in tiling.axes.items():
        if not axis.margin:
            continue
        for border in tiling.borders(dim):
            for before, behind, line in _strips(views, tiling, border):
                for one, other in match(before, behind, list(tiling.axes).index(dim), line):
                    unions.join(one, other)
    return unions


def match(before: np.ndarray, behind: np.ndarray, axis: int, line: int) -> list[tuple[int, int]]:
    """Return the labels of two views of one strip that are the same object.

    Parameters
    ----------
    before, behind
        The strip as the tile before the border sees it, and as that behind it does.
    axis, line
        Where the border lies in the strip.

    Examples
    --------
    >>> match(np.array([[0, 3, 3, 3]]), np.array([[0, 8, 8, 0]]), axis=1, line=2)
    [(3, 8)]
    """
    both = (before != 0) & (behind != 0) & (before != behind)
    if not both.any():
        return []
    crossing = _crossing(before, axis, line), _crossing(behind, axis, line)
    pairs, shared = np.unique(
        np.stack([before[both], behind[both]]).astype(np.uint64), axis=1, return_counts=True
    )
    sizes = [dict(zip(*_count(side), strict=True)) for side in (before, behind)]
    found = []
    for (one, other), count in zip(pairs.T.tolist(), shared.tolist(), strict=True):
        smaller = min(sizes[0][one], sizes[1][other])
        if count >= SHARE * smaller and (one in crossing[0] or other in crossing[1]):
            found.append((one, other))
    return found


def _count(labels: np.ndarray) -> tuple[list[int], list[int]]:
    names, counts = np.unique(labels, return_counts=True)
    return names.tolist(), counts.tolist()


def _crossing(labels: np.ndarray, axis: int, line: int) -> set[int]:
    """Return the labels on both sides of a border."""
    left, right = np.split(labels, [line], axis=axis)
    return set(np.intersect1d(left, right).tolist()) - {0}


def _strips(
    views: Source, tiling: Tiling, border: Border
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield what both sides see around a border, one pair of views after the other."""
    axis = tiling.axes[border.dim]
    # Half of the overlap: near its edge a view has seen too little around.
    reach = max(1, axis.margin // 2)
    low = max(border.place - reach, axis.span(border.number + 1)[0])
    high = min(border.place + reach, axis.span(border.number)[1])
    others = [
        [
            (
                number * other.view,
                number * other.view + other.span(number)[1] - other.span(number)[0],
            )
            for number in range(other.count)
        ]
        for dim, other in tiling.axes.items()
        if dim != border.dim
    ]
    place = list(tiling.axes).index(border.dim)
    for rest in product(*others):
        sides: list[Any] = []
        for number in (border.number, border.number + 1):
            shift = number * axis.view - axis.span(number)[0]
            ranges = (*rest[:place], (low + shift, high + shift), *rest[place:])
            sides.append(views.read(ranges))
        yield sides[0], sides[1], border.place - low
