"""Join objects that borders of tiles have cut.

Neighbouring tiles see the same pixels around their border. Two labels there that cover each
other are one object. Tiles are read one after the other, each once; of those before, only the
strips at borders are held to which the tile behind has not come yet: of one row of tiles. What
was marked while tiles were at hand tells where both sides agree anyway: nothing is read there.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import product

import numpy as np

from barrow.fields.spatial.tiles import Axis, Tiling
from barrow.model.source import Source

# Two labels are one object if they share this much of the smaller one, near the border.
SHARE = 0.5

Numbers = tuple[int, ...]
"""Of a tile, along each dimension."""
Marks = Mapping[str, str]
"""Of a tile: what objects look like that cross its borders, by dimension and side."""
BEFORE, BEHIND = "before", "behind"
"""The borders of a tile along a dimension."""


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


def join_borders(
    views: Source, tiling: Tiling, marks: Mapping[Numbers, Marks] | None = None
) -> Unions:
    """Return which labels of views side by side are the same object.

    Parameters
    ----------
    marks
        Of each tile, from :func:`mark_borders`; what is not known is looked at.
    """
    unions, marks = Unions(), marks or {}
    waiting: dict[tuple[str, Numbers], np.ndarray] = {}
    for numbers in product(*(range(axis.count) for axis in tiling.axes.values())):
        borders = [
            (dim, place, side, behind)
            for dim, place, side, before, behind in _list_borders(tiling, numbers)
            if not _agree(dim, marks.get(before), marks.get(behind))
        ]
        if not borders:
            continue
        slots = zip(tiling.axes.values(), numbers, strict=True)
        view = views.read(tuple(axis.slot(number) for axis, number in slots))
        for dim, place, side, behind in borders:
            axis, border = tiling.axes[dim], behind[place] - 1
            strip = _strip(view, axis, place, border, numbers[place])
            if side == BEHIND:
                # A copy: a part of the view would keep all of it.
                waiting[dim, behind] = strip.copy()
                continue
            line = axis.core(border)[1] - _around(axis, border)[0]
            for one, other in match(waiting.pop((dim, behind)), strip, place, line):
                unions.join(one, other)
    return unions


def mark_borders(view: np.ndarray, tiling: Tiling, numbers: Numbers) -> dict[str, str]:
    """Return marks for the borders of a tile: those of two neighbours are equal if they agree.

    Objects that do not cross a border do not count: a tile that does not own them may not see
    all of them.

    Examples
    --------
    >>> from barrow.fields.spatial.tiles import Axis
    >>> tiling = Tiling({"x": Axis(length=12, view=8, margin=2)})
    >>> labels = np.array([0, 0, 0, 4, 4, 4, 0, 0, 0, 9, 9, 0])
    >>> one = mark_borders(labels[:8], tiling, (0,))
    >>> other = mark_borders(labels[2:10], tiling, (1,))
    >>> one["x behind"] == other["x before"]
    True
    """
    marks = {}
    for dim, place, side, _, behind in _list_borders(tiling, numbers):
        axis, border = tiling.axes[dim], behind[place] - 1
        strip = _strip(view, axis, place, border, numbers[place])
        line = axis.core(border)[1] - _around(axis, border)[0]
        crossing = np.array(sorted(_crossing(strip, place, line)), strip.dtype)
        seen = np.where(np.isin(strip, crossing), strip, 0)
        marks[f"{dim} {side}"] = blake2b(seen.tobytes(), digest_size=16).hexdigest()
    return marks


def _agree(dim: str, before: Marks | None, behind: Marks | None) -> bool:
    if before is None or behind is None:
        return False
    mark = before.get(f"{dim} {BEHIND}")
    return mark is not None and mark == behind.get(f"{dim} {BEFORE}")


def _list_borders(
    tiling: Tiling, numbers: Numbers
) -> Iterator[tuple[str, int, str, Numbers, Numbers]]:
    """Yield the borders of a tile: dimension and its place, side, and the tiles on both sides."""
    for place, (dim, axis) in enumerate(tiling.axes.items()):
        if not axis.margin:
            continue
        near, number, far = numbers[:place], numbers[place], numbers[place + 1 :]
        if number:
            yield dim, place, BEFORE, (*near, number - 1, *far), numbers
        if number < axis.count - 1:
            yield dim, place, BEHIND, numbers, (*near, number + 1, *far)


def _around(axis: Axis, border: int) -> tuple[int, int]:
    """Return the strip around the border behind a view: half of what both sides see.

    Near the edge of what it sees, a view has seen too little around.
    """
    place = axis.core(border)[1]
    reach = max(1, axis.margin // 2)
    return max(place - reach, axis.span(border + 1)[0]), min(place + reach, axis.length)


def _strip(view: np.ndarray, axis: Axis, place: int, border: int, number: int) -> np.ndarray:
    """Return what a view sees of the strip around a border."""
    low, high = (edge - axis.span(number)[0] for edge in _around(axis, border))
    return view[(slice(None),) * place + (slice(low, high),)]


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
